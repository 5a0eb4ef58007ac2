package papers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test itself the foreign program, where the variable says how it is to behave.
func TestMain(m *testing.M) {
	switch os.Getenv("HOPSCOPE_FOREIGN") {
	case "":
		os.Exit(m.Run())
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "deaf": // it answers without reading what it gets
		fmt.Println("{}")
	case "hang":
		select {}
	case "flood":
		for line := strings.Repeat("x", 1<<20); ; {
			if _, err := fmt.Println(line); err != nil {
				os.Exit(1)
			}
		}
	case "fail":
		fmt.Fprintln(os.Stderr, "no idea "+strings.Repeat("!", 10_000))
		os.Exit(3)
	}
}

// A program answers, or there is an error that says why it does not; nothing hangs, and nothing grows beyond its bound.
func TestAnswer(t *testing.T) {
	instance := map[string]string{"name": strings.Repeat("long ", 100_000)}
	for _, x := range []struct {
		how  string
		want string // in the error
		is   error
	}{
		{how: "echo"}, {how: "deaf"}, {"fail", "exit status 3: no idea !!!", nil}, {"flood", "", errLength}, {"hang", "", errTime},
	} {
		t.Run(x.how, func(t *testing.T) {
			t.Setenv("HOPSCOPE_FOREIGN", x.how)
			p, err := NewProgram(os.Args[0]+" -x", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if x.is == errTime {
				p.Limit = -startTime + time.Millisecond
			}
			answer, took, err := p.Answer(t.Context(), instance)
			switch {
			case x.is != nil && !errors.Is(err, x.is), x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || len(err.Error()) > 2*maxError):
				t.Errorf("%v, want %v %q", err, x.is, x.want)
			case x.is == nil && x.want == "" && (err != nil || len(answer) < 2 || took <= 0):
				t.Errorf("%.20q after %v, %v", answer, took, err)
			}
		})
	}
	t.Setenv("HOPSCOPE_FOREIGN", "hang")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := NewProgram(os.Args[0], time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Answer(ctx, instance); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestNewProgram(t *testing.T) {
	for _, command := range []string{"", "  ", "/nowhere/no-such-program --fast"} {
		if _, err := NewProgram(command, time.Second); err == nil {
			t.Errorf("%q is a command", command)
		}
	}
}
