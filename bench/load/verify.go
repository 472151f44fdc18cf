package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

const legacy = "alpha.kubernetes.io/nvidia-gpu"

// A verifier says what is wrong with an answer, in each call anew. What was sent may be legacy.
type verifier func(status int, body []byte, uid, name string, isLegacy bool) error

func newVerifier(expect, resource string) (verifier, error) {
	switch expect {
	case "patch":
		return patchNaming(resource), nil
	case "pod":
		return podAskingFor(resource), nil
	}
	return nil, fmt.Errorf("--expect is patch or pod, not %q", expect)
}

func patchNaming(resource string) verifier {
	// In a JSON Pointer "/" is "~1"; a patch may also carry the name as a key of a whole map.
	pointer := []byte(strings.ReplaceAll(resource, "/", "~1"))
	plain := []byte(`"` + resource + `"`)
	return func(status int, body []byte, uid, _ string, isLegacy bool) error {
		if status != 200 {
			return fmt.Errorf("status %d: %.200s", status, body)
		}
		var review struct {
			Response struct {
				UID       string
				Allowed   bool
				Patch     []byte
				PatchType string
			}
		}
		if err := json.Unmarshal(body, &review); err != nil {
			return err
		}
		r := review.Response
		switch {
		case r.UID != uid:
			return fmt.Errorf("uid %q is not %q", r.UID, uid)
		case r.Allowed && !isLegacy:
			return nil // a pod of today may stay as it is
		case !r.Allowed || r.PatchType != "JSONPatch":
			return fmt.Errorf("not allowed with a JSON patch: %.200s", body)
		case !bytes.Contains(r.Patch, pointer) && !bytes.Contains(r.Patch, plain):
			return fmt.Errorf("the patch does not name %s: %.200s", resource, r.Patch)
		}
		return nil
	}
}

func podAskingFor(resource string) verifier {
	return func(status int, body []byte, _, name string, _ bool) error {
		if status != 201 {
			return fmt.Errorf("status %d: %.300s", status, body)
		}
		var pod struct {
			Metadata struct{ Name string }
			Spec     struct {
				Containers []struct {
					Resources struct{ Limits map[string]string }
				}
			}
		}
		if err := json.Unmarshal(body, &pod); err != nil {
			return err
		}
		if pod.Metadata.Name != name {
			return fmt.Errorf("pod %q is not %q", pod.Metadata.Name, name)
		}
		for i, c := range pod.Spec.Containers {
			_, asks := c.Resources.Limits[resource]
			_, old := c.Resources.Limits[legacy]
			if !asks || (old && resource != legacy) {
				return fmt.Errorf("container %d asks for %v, not for %s", i, c.Resources.Limits, resource)
			}
		}
		return nil
	}
}
