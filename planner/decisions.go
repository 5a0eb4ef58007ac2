package planner

import (
	"bytes"
	"encoding/json"
	"io"
)

// Given is the set of keys that the JSON of a plan has. Keys of its statistics have the form "stats.objective".
type Given map[string]bool

// ReadDecisions reads a plan as [ReadPlan] does, of which the JSON may hold nothing but the decisions. The function complete
// gets the keys that are there and derives the rest of the plan from the decisions, all of its statistics included. Statistics
// of the JSON then replace derived ones, so that a check compares those that are given, and no others.
func ReadDecisions(r io.Reader, kind string, plan any, complete func(Given) error) (Given, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if err := ReadPlan(bytes.NewReader(b), kind, plan); err != nil {
		return nil, err
	}
	var keys, stats map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		return nil, err
	}
	given := Given{}
	for key := range keys {
		given[key] = true
	}
	if raw := keys["stats"]; raw != nil {
		if err := json.Unmarshal(raw, &stats); err != nil {
			return nil, err
		}
		for key := range stats {
			given["stats."+key] = true
		}
	}
	if err := complete(given); err != nil {
		return nil, err
	}
	if len(stats) == 0 {
		return given, nil
	}
	encoded, err := json.Marshal(map[string]json.RawMessage{"stats": keys["stats"]})
	if err != nil {
		return nil, err
	}
	return given, json.Unmarshal(encoded, plan)
}
