package rate

import (
	"os"
	"testing"
	"time"
)

// What is measured is what a window is: hops and flows of all collectors.
func TestWindow(t *testing.T) {
	r, err := Window(windowConfig{Collectors: 3, Flows: 200, Reports: 20_000, slices: 4, length: time.Second, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Hops == 0 || r.Flows != 200 || r.Bytes == 0 || r.MergedHops < r.Hops || r.MergedHops > 3*r.Hops {
		t.Errorf("measured %+v", r)
	}
	if err := r.Print(os.Stderr); err != nil {
		t.Fatal(err)
	}
}
