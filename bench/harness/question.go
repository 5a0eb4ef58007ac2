package harness

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
)

// Question is an instance as a foreign program gets it.
type Question struct {
	Family    string  `json:"family"`
	Name      string  `json:"name"`
	Objective string  `json:"objective,omitempty"` // of orchestrate: concentrate or balance
	Seed      uint64  `json:"seed"`
	Seconds   float64 `json:"seconds"` // time for the answer
	Problem   any     `json:"problem"`

	Truth any `json:"-"` // the expected answer; nil if the answer alone is judged
}

// Write writes questions into a directory, a file each, and beside those that have a truth a file with it. A
// directory that has files already is an error: they would be lost, or be between the questions.
func Write(dir string, all iter.Seq[*Question]) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return fmt.Errorf("%s has files already, such as %s: give a new directory", dir, there[0].Name())
	}
	k := 0
	for q := range all {
		k++
		name := filepath.Join(dir, fmt.Sprintf("%02d-%s", k, q.Family))
		if err := writeJSON(name+".json", q); err != nil {
			return err
		}
		if q.Truth == nil {
			continue
		}
		if err := writeJSON(name+".truth.json", q.Truth); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
