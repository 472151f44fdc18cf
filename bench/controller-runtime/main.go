// A minimal mutating webhook, the usual way in Go: what ours is measured against.
//
// It does two of the things that ours does (renames the legacy resource, adds the toleration), with
// controller-runtime's own parts only: the typed Pod, its decoder, PatchResponseFromRaw and its server.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	legacy corev1.ResourceName = "alpha.kubernetes.io/nvidia-gpu"
	modern corev1.ResourceName = "nvidia.com/gpu"
)

type gpuPods struct {
	decoder admission.Decoder
}

func (g *gpuPods) Handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := g.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	changed := repair(pod.Spec.InitContainers)
	changed = repair(pod.Spec.Containers) || changed
	if !changed {
		return admission.Allowed("")
	}
	tolerate(pod)
	repaired, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, repaired)
}

func repair(containers []corev1.Container) bool {
	changed := false
	for i := range containers {
		changed = rename(containers[i].Resources.Limits) || changed
		changed = rename(containers[i].Resources.Requests) || changed
	}
	return changed
}

func rename(amounts corev1.ResourceList) bool {
	amount, ok := amounts[legacy]
	if !ok {
		return false
	}
	delete(amounts, legacy)
	if _, ok := amounts[modern]; !ok {
		amounts[modern] = amount
	}
	return true
}

func tolerate(pod *corev1.Pod) {
	for _, t := range pod.Spec.Tolerations {
		if t.Key == string(modern) && t.Operator == corev1.TolerationOpExists {
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
		Key: string(modern), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
	})
}

func main() {
	port := flag.Int("port", 0, "TCP port")
	folder := flag.String("cert-dir", "", "folder with tls.crt and tls.key")
	flag.Parse()

	ctrllog.SetLogger(logr.Discard()) // a log line a call would only make it slower

	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	server := webhook.NewServer(webhook.Options{
		Host:    "127.0.0.1",
		Port:    *port,
		CertDir: *folder,
		// As kubebuilder's template does, and as ours: the API server's webhook client speaks HTTP/1.1.
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	})
	server.Register("/mutate", &webhook.Admission{Handler: &gpuPods{decoder: admission.NewDecoder(scheme)}})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := server.Start(ctx); err != nil {
		log.Fatal(err)
	}
}
