// A closed loop of N keep-alive TLS connections for T seconds, or calls at a rate (open.go); every answer is
// verified.
//
// HTTP/1.1 is written by hand on tls.Conn: no goroutine between writing and reading, so
// that the generator's core is never the one that is measured. The result is one JSON object on stdout.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// The places in a body that become another value in each call, of the same length.
const (
	uidPlace    = "00000000-0000-4000-8000-000000000000"
	namePlace   = "bench-000000000000"
	accessPlace = "kube-api-access-00000" // the ServiceAccount plugin draws five characters for each pod
)

const drawn = "bcdfghjklmnpqrstvwxz2456789" // of which Kubernetes draws them

type options struct {
	target      *url.URL
	connections int
	warmup      time.Duration
	length      time.Duration
	bodies      [][]byte
	tls         *tls.Config
	verify      verifier
}

type result struct {
	Calls    int     `json:"calls"` // all of them, those of the warm-up too
	Count    int     `json:"count"` // measured ones
	Failures int     `json:"failures"`
	Late     int     `json:"late"` // of these: no answer in the timeout of a call (open loop)
	First    string  `json:"first_failure,omitempty"`
	Dialled  int     `json:"dialled"`
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"calls_per_second"`
	P50      float64 `json:"p50_ms"`
	P90      float64 `json:"p90_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
}

func main() {
	log.SetFlags(0)
	target := flag.String("url", "", "where to POST")
	connections := flag.Int("connections", 1, "connections, each with one call at a time")
	seconds := flag.Float64("seconds", 5, "how long to measure")
	warmup := flag.Float64("warmup", 0.5, "seconds before that, not measured")
	body := flag.String("body", "", "file to send, or FILE.jsonl.gz with many that are sent in turn; uid, pod name and kube-api-access change in each call")
	ca := flag.String("ca", "", "certificate authority of the server (PEM)")
	cert := flag.String("cert", "", "client certificate (PEM)")
	key := flag.String("key", "", "key of the client certificate (PEM)")
	expect := flag.String("expect", "", "patch: an AdmissionReview answer with a patch that names --resource; pod: a created pod whose containers ask for --resource only")
	resource := flag.String("resource", "nvidia.com/gpu", "what the answer has to name")
	rate := flag.Float64("rate", 0, "calls a second, as kube-apiserver sends them, whatever was answered (--connections does not count)")
	timeout := flag.Float64("timeout", 3, "seconds that a call has, with --rate")
	flag.Parse()

	o := options{
		connections: *connections,
		warmup:      time.Duration(*warmup * float64(time.Second)),
		length:      time.Duration(*seconds * float64(time.Second)),
	}
	var err error
	if o.target, err = url.Parse(*target); err != nil || o.target.Host == "" {
		log.Fatalf("--url %q is not a URL with a host", *target)
	}
	if o.bodies, err = read(*body); err != nil {
		log.Fatal(err)
	}
	if o.tls, err = clientTLS(*ca, *cert, *key); err != nil {
		log.Fatal(err)
	}
	if o.verify, err = newVerifier(*expect, *resource); err != nil {
		log.Fatal(err)
	}
	measure := run
	if *rate > 0 {
		measure = func(o options) result { return open(o, *rate, time.Duration(*timeout*float64(time.Second))) }
	}
	if err := json.NewEncoder(os.Stdout).Encode(measure(o)); err != nil {
		log.Fatal(err)
	}
}

func read(name string) ([][]byte, error) {
	packed, err := os.ReadFile(name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return [][]byte{packed}, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(unpacked)
	return bytes.Split(bytes.TrimSpace(all), []byte("\n")), err
}

func clientTLS(ca, cert, key string) (*tls.Config, error) {
	config := &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func run(o options) result {
	requests := headed(o)
	clients := make([]*client, o.connections)
	start := time.Now().Add(o.warmup)
	end := start.Add(o.length)
	var all sync.WaitGroup
	for i := range clients {
		clients[i] = newClient(i, o, requests)
		all.Go(func() { clients[i].loop(start, end) })
	}
	all.Wait()
	return summary(clients, o.length)
}

func summary(clients []*client, length time.Duration) result {
	var r result
	var times []time.Duration
	for _, c := range clients {
		times = append(times, c.times...)
		r.Calls += c.calls
		r.Failures += c.failures
		r.Dialled += c.dialled
		if r.First == "" {
			r.First = c.first
		}
	}
	r.Seconds = length.Seconds()
	r.count(times)
	return r
}

func (r *result) count(times []time.Duration) {
	slices.Sort(times)
	r.Count = len(times)
	r.Rate = float64(r.Count) / r.Seconds
	r.P50, r.P90, r.P99, r.Max = at(times, 0.50), at(times, 0.90), at(times, 0.99), at(times, 1)
}

func at(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(share*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i].Microseconds()) / 1000
}

// A client has one connection and one call at a time on it.
type client struct {
	o         options
	id        int
	calls     int
	requests  []request // shared: a copy for each of 900 clients took 4.5 GB, and longer than the measurement
	sent      []byte    // the last one
	uid, name []byte
	access    []byte
	conn      *tls.Conn
	reader    *bufio.Reader
	answer    bytes.Buffer
	times     []time.Duration
	failures  int
	dialled   int
	first     string
}

// A request is a body with its head, and where in it something changes in each call.
type request struct {
	bytes                     []byte
	uidsAt, namesAt, accessAt []int
	legacy                    bool // it has to be patched
}

func newClient(id int, o options, requests []request) *client {
	return &client{o: o, id: id, requests: requests, uid: []byte(uidPlace), name: []byte(namePlace), access: []byte(accessPlace)}
}

func headed(o options) []request {
	var all []request
	for _, body := range o.bodies {
		// The headers are those that kube-apiserver's own webhook client sends.
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: kube-apiserver-admission\r\n"+
			"Content-Length: %d\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"+
			"Accept-Encoding: gzip\r\n\r\n", o.target.RequestURI(), o.target.Host, len(body))
		all = append(all, prepared(append([]byte(head), body...)))
	}
	return all
}

func prepared(whole []byte) request {
	return request{
		bytes:  whole,
		uidsAt: places(whole, uidPlace), namesAt: places(whole, namePlace), accessAt: places(whole, accessPlace),
		legacy: bytes.Contains(whole, []byte(legacy)),
	}
}

func places(in []byte, what string) []int {
	var found []int
	for from := 0; ; {
		i := bytes.Index(in[from:], []byte(what))
		if i < 0 {
			return found
		}
		found = append(found, from+i)
		from += i + len(what)
	}
}

func (c *client) loop(start, end time.Time) {
	defer c.hangUp()
	for {
		before := time.Now()
		if before.After(end) {
			return
		}
		r := c.renew()
		err := c.call(r, end.Add(10*time.Second))
		after := time.Now()
		switch {
		case err != nil: // a failure in the warm-up is one, too
			c.fail(err)
		case !before.Before(start) && !after.After(end):
			c.times = append(c.times, after.Sub(before))
		}
	}
}

// renew takes the next body.
func (c *client) renew() request {
	c.calls++
	// Each connection begins elsewhere, so that no two send the same at the same time.
	r := c.requests[(c.calls+c.id*len(c.requests)/c.o.connections)%len(c.requests)]
	return c.fresh(r)
}

// fresh copies it with a uid, pod name and access volume of its own; the copy lasts until the next.
func (c *client) fresh(r request) request {
	c.sent = append(c.sent[:0], r.bytes...)
	r.bytes = c.sent
	copy(c.uid[24:], fmt.Sprintf("%04x%08x", c.id, c.calls))
	copy(c.name[6:], fmt.Sprintf("%04x%08x", c.id, c.calls))
	for i, at := len(c.access)-5, c.calls*max(c.o.connections, 1)+c.id; i < len(c.access); i++ {
		c.access[i] = drawn[at%len(drawn)]
		at /= len(drawn)
	}
	overwrite(r.bytes, r.uidsAt, c.uid)
	overwrite(r.bytes, r.namesAt, c.name)
	overwrite(r.bytes, r.accessAt, c.access)
	return r
}

func overwrite(in []byte, places []int, fresh []byte) {
	for _, i := range places {
		copy(in[i:], fresh)
	}
}

func (c *client) call(r request, deadline time.Time) error {
	if c.conn == nil {
		if err := c.dial(deadline); err != nil {
			return err
		}
	}
	// As net/http's transport does, and so the API server: at most 4 KiB at a time.
	for piece := range slices.Chunk(r.bytes, 4096) {
		if _, err := c.conn.Write(piece); err != nil {
			c.hangUp()
			return err
		}
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		c.hangUp()
		return err
	}
	c.answer.Reset()
	_, err = io.Copy(&c.answer, answer.Body)
	answer.Body.Close()
	if err != nil || answer.Close {
		c.hangUp()
	}
	if err != nil {
		return err
	}
	return c.o.verify(answer.StatusCode, c.answer.Bytes(), string(c.uid), string(c.name), r.legacy)
}

func (c *client) dial(deadline time.Time) error {
	dialer := &net.Dialer{Deadline: deadline}
	conn, err := tls.DialWithDialer(dialer, "tcp", c.o.target.Host, c.o.tls)
	if err != nil {
		return err
	}
	c.dialled++
	c.conn, c.reader = conn, bufio.NewReader(conn)
	return conn.SetDeadline(deadline)
}

func (c *client) hangUp() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *client) fail(err error) {
	c.failures++
	if c.first == "" {
		c.first = err.Error()
	}
	time.Sleep(10 * time.Millisecond) // a server that is gone is not called a million times
}
