package planner

import (
	"errors"
	"fmt"
	"math"
)

// maxErrors bounds how many problems Errors lists.
const maxErrors = 20

// Errors collects the errors of a problem or a plan. It lists the first twenty and counts the rest, so that a file in
// which everything is wrong still gives a readable error. The zero value is empty and ready for use.
type Errors struct {
	list []error
	more int
}

// Add adds one error, with the verbs of fmt.Errorf.
func (e *Errors) Add(format string, args ...any) {
	if len(e.list) == maxErrors {
		e.more++
		return
	}
	e.list = append(e.list, fmt.Errorf(format, args...))
}

// Len returns the number of errors that were added.
func (e *Errors) Len() int { return len(e.list) + e.more }

// Join makes one error of all, a line each. It is nil where none was added.
func (e *Errors) Join() error {
	if e.more > 0 {
		return errors.Join(append(e.list[:len(e.list):len(e.list)], fmt.Errorf("%d further problems", e.more))...)
	}
	return errors.Join(e.list...)
}

// Near reports whether two figures are equal up to rounding: checks add up in another order than solvers do.
func Near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }
