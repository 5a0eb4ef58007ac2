package small

import "testing"

func TestClamp(t *testing.T) {
	for _, c := range [][2]int{{1, 2}, {2, 2}, {3, 3}, {4, 4}, {5, 4}} {
		if got := Clamp(c[0], 2, 4); got != c[1] {
			t.Error(c, got)
		}
	}
}

func TestSum(t *testing.T) {
	if got := Sum([]int{1, 2}); got != 3 {
		t.Error(got)
	}
}
