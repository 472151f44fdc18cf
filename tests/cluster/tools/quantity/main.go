// Reads lines of a JSON list each; prints for each text what Kubernetes makes of it as a quantity.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

type reading struct {
	Accepted  bool   `json:"accepted"`
	Canonical string `json:"canonical"`
	Value     int64  `json:"value"` // a whole number, rounded up, away from zero
	Whole     bool   `json:"whole"` // the test of validation: MilliValue() % 1000 == 0
	Nanos     string `json:"nanos"` // the exact amount
}

// read takes the text as the API server gets it: raw, between quotes.
func read(raw json.RawMessage) reading {
	var quantity resource.Quantity
	if err := quantity.UnmarshalJSON(raw); err != nil {
		return reading{}
	}
	copied := quantity.DeepCopy()
	nanos := copied.AsDec()
	nanos.SetScale(nanos.Scale() - 9)
	return reading{
		Accepted:  true,
		Canonical: quantity.String(),
		Value:     quantity.Value(),
		Whole:     quantity.MilliValue()%1000 == 0,
		Nanos:     nanos.String(),
	}
}

func main() {
	input, output := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for input.More() {
		var texts []json.RawMessage
		if err := input.Decode(&texts); err != nil {
			fmt.Fprintln(os.Stderr, "want lists of JSON strings on standard input:", err)
			os.Exit(1)
		}
		readings := make([]reading, 0, len(texts))
		for _, text := range texts {
			readings = append(readings, read(text))
		}
		if err := output.Encode(readings); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
