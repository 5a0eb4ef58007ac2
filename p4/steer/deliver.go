package steer

import (
	"encoding/json"
	"fmt"

	"github.com/hopscope/hopscope/sink/flock"
)

// rftProgram is the program of switches that carry out plans of delivery, and assignments of flows to interfaces.
const rftProgram = "rft"

// writePlan replaces a file with a plan.
func writePlan(key, file string, plan any) error {
	b, err := json.MarshalIndent(plan, "", " ")
	if err == nil {
		err = flock.ReplaceBytes(file, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
