package loop

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// A link that fails is suspected within two cycles by ours, and no other one is; the same seed gives the same table.
func TestDetection(t *testing.T) {
	testkit.Long(t)
	o := DefaultOptions()
	o.Seed, o.Faults, o.Quiet, o.pause = 3, []string{"link-down"}, 75*time.Second, 5*time.Second
	one, err := runDetection(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	two, err := runDetection(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	a, err := json.Marshal(one)
	b, failed := json.Marshal(two)
	if err != nil || failed != nil || !bytes.Equal(a, b) {
		t.Errorf("%s\nthen %s", a, b)
	}
	var back Table
	if err := json.Unmarshal(a, &back); err != nil || len(back.Rows) != 1 || back.Rows[0].Fault != "link-down" || back.Rows[0].Happened != 1 {
		t.Errorf("%v: %+v", err, back)
	}
	for _, m := range []int{oursRounds, oursProbes, oursAll} {
		if c := one.Rows[0].Methods[m]; c.Soon != 1 || c.SoonRight != 2 || c.SoonWrong != 0 {
			t.Errorf("%s: %+v", c.Method, c)
		}
	}
	if c := one.Rows[0].Methods[fantNarrow]; c.SoonWrong == 0 {
		t.Errorf("%s suspects no other link: %+v", c.Method, c)
	}
	if err := one.Print(&text); err != nil || !strings.Contains(text.String(), "link-down") {
		t.Errorf("%v: %s", err, &text)
	}
}

// options that mean nothing are refused.
func TestOptions(t *testing.T) {
	for want, set := range map[string]func(*options){
		"--seeds 0":            func(o *options) { o.Seeds = 0 },
		`--fault "earthquake"`: func(o *options) { o.Faults = []string{"earthquake"} },
		"given twice":          func(o *options) { o.Faults = []string{"link-down", "link-down"} },
	} {
		o := DefaultOptions()
		set(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	o := DefaultOptions()
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}
