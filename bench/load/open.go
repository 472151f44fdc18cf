package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// What kube-apiserver's own client has: HTTP/1.1 (kubernetes/kubernetes#75791), so many unused connections a
// host (client-go), as many others as there are calls, and no TLS session that is resumed.
const idlePerHost = 25

// open sends calls at a rate, whether or not earlier ones were answered; each has so long.
func open(o options, rate float64, timeout time.Duration) result {
	var dialled atomic.Int64
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		TLSClientConfig: o.tls, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: idlePerHost,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return dialer.DialContext(ctx, network, address)
		},
	}
	caller := &http.Client{Transport: transport, Timeout: timeout}
	calls := make([]answered, int(rate*o.length.Seconds()))
	requests := make([]request, len(o.bodies))
	for i, body := range o.bodies {
		requests[i] = prepared(body)
	}
	began := time.Now()
	var all sync.WaitGroup
	for i := range calls {
		time.Sleep(time.Until(began.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
		all.Go(func() { calls[i] = once(caller, o, requests[i%len(requests)], i) })
	}
	all.Wait()
	return openSummary(calls, int(dialled.Load()), o.length)
}

type answered struct {
	took time.Duration
	err  error
}

func once(caller *http.Client, o options, r request, number int) answered {
	c := newClient(number>>16, o, nil)
	c.calls = number & 0xffff
	r = c.fresh(r)
	began := time.Now()
	answer, err := caller.Post(o.target.String(), "application/json", bytes.NewReader(r.bytes))
	if err != nil {
		return answered{time.Since(began), err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	took := time.Since(began)
	if err == nil {
		err = o.verify(answer.StatusCode, text, string(c.uid), string(c.name), r.legacy)
	}
	return answered{took, err}
}

func openSummary(calls []answered, dialled int, length time.Duration) result {
	r := result{Calls: len(calls), Dialled: dialled, Seconds: length.Seconds()}
	var times []time.Duration
	for _, each := range calls {
		var network net.Error
		switch {
		case each.err == nil:
			times = append(times, each.took)
			continue
		case errors.As(each.err, &network) && network.Timeout():
			r.Late++
		}
		r.Failures++
		if r.First == "" {
			r.First = fmt.Sprintf("%.400s", each.err)
		}
	}
	r.count(times)
	return r
}
