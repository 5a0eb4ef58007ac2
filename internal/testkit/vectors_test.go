package testkit

import "testing"

func TestVector(t *testing.T) {
	names := VectorNames()
	if len(names) == 0 {
		t.Fatal("no vectors")
	}
	for _, name := range names {
		if b, err := Vector(name); err != nil || len(b) == 0 {
			t.Errorf("Bytes(%q) = %d bytes, %v", name, len(b), err)
		}
	}
	if _, err := Vector("no-such-vector"); err == nil {
		t.Error("Bytes of an unknown name gave no error")
	}
}
