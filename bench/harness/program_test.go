package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hopscope/hopscope/internal/testkit"
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
	case "traceback":
		fmt.Fprintln(os.Stderr, "Traceback:\n"+strings.Repeat("  a line\n", 10_000)+"KeyError\xff\f\v\r")
		os.Exit(1)
	case "keeper": // its child has its output, and goes on
		c := exec.Command(os.Args[0])
		c.Env, c.Stdout, c.Stderr = append(os.Environ(), "HOPSCOPE_FOREIGN=hang"), os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Println("{}")
	case "silent":
	case "two":
		fmt.Println("{} {}")
	case "misspelt":
		fmt.Println(`{"plann":1}`)
	case "dump":
		fmt.Println("Traceback:\x1b[2J\tnot JSON")
	case "hoard":
		var all [][]byte
		for range 1 << 12 {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 1 << 12 {
				b[i] = 1
			}
			all = append(all, b)
		}
		fmt.Println("{}", len(all))
	case "lasting":
		name := os.Getenv("HOPSCOPE_PID")
		if os.WriteFile(name+".new", []byte(strconv.Itoa(os.Getpid())), 0o600) != nil || os.Rename(name+".new", name) != nil {
			os.Exit(1)
		}
		select {}
	case "bench": // that is killed
		os.Setenv("HOPSCOPE_FOREIGN", "lasting")
		p, err := NewProgram(os.Args[0], time.Hour)
		if err != nil {
			os.Exit(1)
		}
		p.Answer(context.Background(), 1)
	case "parent": // its child goes on, and has its own output
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "HOPSCOPE_FOREIGN=hang")
		if err := c.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Println(c.Process.Pid)
	}
}

// A program answers, or there is an error with the reason. Nothing hangs, and nothing grows beyond its bound.
func TestAnswer(t *testing.T) {
	instance := map[string]string{"name": strings.Repeat("long ", 100_000)}
	for _, x := range []struct {
		how  string
		want string // in the error
		is   error
	}{
		{how: "echo"}, {how: "deaf"}, {how: "keeper"}, {"traceback", "exit status 1: Traceback: … KeyError", nil}, {"fail", "exit status 3: no idea !!!", nil}, {"flood", "", errLength}, {"hang", "", errTime}, {"late", "", errTime},
	} {
		t.Run(x.how, func(t *testing.T) {
			t.Setenv("HOPSCOPE_FOREIGN", x.how)
			p, err := NewProgram(os.Args[0]+" -x", testkit.Patience)
			if err != nil {
				t.Fatal(err)
			}
			switch x.how {
			case "hang":
				p.Limit = -startTime + time.Millisecond
			case "late": // the time is over before the program starts
				p.Limit = -startTime
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

// Answers that are none say what is wrong, in one line without anything that moves a terminal's cursor but what the
// screen takes out.
func TestAsk(t *testing.T) {
	p, err := NewProgram(os.Args[0], testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]string{
		"silent": errSilent.Error(), "two": "the answer, 6 bytes: byte 4: more than one JSON value", "misspelt": `"plann"`, "dump": "the answer, 24 bytes: ", "traceback": "KeyError",
	} {
		t.Setenv("HOPSCOPE_FOREIGN", how)
		var answer struct {
			Plan int `json:"plan"`
		}
		_, err := p.Ask(t.Context(), "question", &answer)
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(Reason(err), "\n\t\v\f\r\x1b") || !utf8.ValidString(Reason(err)) {
			t.Errorf("%s: %v, want %q", how, err, want)
		}
	}
}

// The processes that a program has started end with it.
func TestChildren(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no groups of processes
	}
	t.Setenv("HOPSCOPE_FOREIGN", "parent")
	p, err := NewProgram(os.Args[0], testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := p.Answer(t.Context(), "question")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(answer)))
	if err != nil {
		t.Fatal(err)
	}
	child, err := os.FindProcess(pid)
	if err != nil {
		return // it is not there
	}
	for end := time.Now().Add(testkit.Patience); !gone(child); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d goes on", pid)
		}
	}
}

// A program that takes more memory than it may have fails, and nothing else does.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nothing bounds it
	}
	t.Setenv("HOPSCOPE_FOREIGN", "hoard")
	p, err := NewProgram(os.Args[0], testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	p.Memory = 512 << 20
	if answer, _, err := p.Answer(t.Context(), "question"); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("%q, %v", answer, err)
	}
}

// Questions are written with their truths beside.
func TestWriteQuestions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := Write(dir, slices.Values([]*Question{{Family: "cover", Seed: 7}, {Family: "pint", Truth: []int{1, 2}}})); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"01-cover.json": `{"family":"cover","name":"","seed":7,"seconds":0,"problem":null}`, "02-pint.json": `{"family":"pint","name":"","seed":0,"seconds":0,"problem":null}`, "02-pint.truth.json": "[1,2]",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || strings.TrimSpace(string(b)) != want {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 {
		t.Errorf("%d files", len(files))
	}
	if err := Write(dir, slices.Values([]*Question{{Family: "cover"}})); err == nil || !strings.Contains(err.Error(), "01-cover.json: give a new directory") {
		t.Errorf("a second time: %v", err)
	}
}

func TestNewProgram(t *testing.T) {
	for _, command := range []string{"", "  ", "/nowhere/no-such-program --fast", os.Args[0] + ` "two words"`} {
		if _, err := NewProgram(command, time.Second); err == nil {
			t.Errorf("%q is a command", command)
		}
	}
}
