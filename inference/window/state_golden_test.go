package window

import (
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

func TestAdmissionStateOfBefore(t *testing.T) {
	a, w := NewAdmission(admissionLimits), newAdmissionWorld(1)
	for range 100 {
		admitted(a, w.next())
	}
	testkit.SameState(t, "admission", a.AppendState(nil), func(b []byte) ([]byte, error) {
		c := NewAdmission(admissionLimits)
		err := c.ReadState(b)
		return c.AppendState(nil), err
	})
}
