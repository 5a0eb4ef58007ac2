package main

import (
	"slices"
	"testing"
	"time"
)

func TestNeedRestart(t *testing.T) {
	old := defaultConfig()
	next := old
	next.Exporters.Profile = "onos"
	next.Events.FalseADay = 20
	next.Window = time.Second
	next.UDP.Workers = 7
	if got, want := needRestart(&old, &next), []string{"window", "udp.workers"}; !slices.Equal(got, want) {
		t.Errorf("needRestart = %q, want %q", got, want)
	}
}
