package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/hopscope/hopscope/planner"
)

const (
	maxAnswer = 64 << 20 // bytes
	maxError  = 300      // bytes of a line of standard error that a message repeats
	startTime = 10 * time.Second
)

// defaultMemory is the limit of a program's data, in bytes.
const defaultMemory = 2 << 30

// The reasons why a program has no answer.
var (
	errTime   = errors.New("no answer in time: it was ended; --time-limit gives it longer")
	errLength = fmt.Errorf("an answer of more than %d bytes: it was ended; an answer is one JSON object", maxAnswer)
	errSilent = errors.New("no answer: it printed nothing, where one JSON object is wanted")
	errEmpty  = errors.New("no command")
	errQuote  = errors.New("a quote: the words of a command end at spaces, and no shell reads it; where a name has a space, give a script that runs it")
)

// Program is the command of a foreign algorithm, with its arguments. It runs once for each question, which is one
// JSON object on its standard input; the answer is its standard output.
type Program struct {
	args []string
	// Limit is the time for one answer. The start of the program has 10 s besides, since interpreters take a while.
	Limit  time.Duration
	Memory uint64 // bytes of its data, held on Linux alone; 0 for defaultMemory
}

// NewProgram makes a program of a command line, whose words are separated by spaces. No shell reads it.
func NewProgram(command string, limit time.Duration) (*Program, error) {
	args := strings.Fields(command)
	if len(args) == 0 {
		return nil, errEmpty
	}
	if strings.ContainsAny(command, `"'`) {
		return nil, errQuote
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return nil, err
	}
	return &Program{args: args, Limit: limit}, nil
}

func (p *Program) String() string { return strings.Join(p.args, " ") }

// Answer runs the program with a question and returns its answer, with the time from its start to its end. A program
// that exceeds the limit is killed. The processes that it has started are killed in any case.
func (p *Program) Answer(ctx context.Context, question any) (answer []byte, took time.Duration, err error) {
	in, err := json.Marshal(question)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.Limit+startTime, errTime)
	defer cancel()
	c := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	out, complaints := &bounded{most: maxAnswer, cancel: cancel}, &complaint{first: bounded{most: maxError}}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(append(in, '\n')), out, complaints
	c.WaitDelay = time.Second / 2 // of children that keep the pipes open: an interrupted command has a second to end
	group(c)
	// The program's parent is a thread, for the signal that ends it when that ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithParent(c)
	start := time.Now()
	if err := c.Start(); err != nil {
		if ctx.Err() != nil { // the time was over before the program ran
			err = context.Cause(ctx)
		}
		return nil, 0, err
	}
	bound(c.Process.Pid, cmp.Or(p.Memory, defaultMemory))
	err = c.Wait()
	took = time.Since(start)
	endGroup(c)
	if errors.Is(err, exec.ErrWaitDelay) { // it has ended well, and processes that it started keep the pipes open
		err = nil
	}
	switch {
	case out.cut:
		return nil, took, errLength
	case ctx.Err() != nil:
		return nil, took, context.Cause(ctx)
	case err != nil:
		return nil, took, fmt.Errorf("%w: %s", err, cmp.Or(complaints.String(), "it wrote nothing on standard error"))
	case len(bytes.TrimSpace(out.kept)) == 0:
		return nil, took, errSilent
	}
	return out.kept, took, nil
}

// Wrong is the error of an answer that cannot be read.
func Wrong(answer []byte, err error) error {
	return fmt.Errorf("the answer, %d bytes: %w", len(answer), err)
}

// Reason is the first line of an error, short enough for the cell of a table.
func Reason(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Sprintf("%.150s", Line(first))
}

// Ask hands a question to the program and reads its answer, one JSON object without keys that answer does not have.
func (p *Program) Ask(ctx context.Context, question, answer any) (time.Duration, error) {
	b, took, err := p.Answer(ctx, question)
	if err != nil {
		return took, err
	}
	if err := planner.ReadJSON(bytes.NewReader(b), answer); err != nil {
		return took, Wrong(b, err)
	}
	return took, nil
}

// bounded keeps the first bytes that are written. Its buffer is not embedded, as its ReadFrom would read all.
type bounded struct {
	kept   []byte
	most   int
	cut    bool
	cancel func()
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.most-len(b.kept))
	b.kept = append(b.kept, p[:n]...)
	if n < len(p) && !b.cut {
		if b.cut = true; b.cancel != nil {
			b.cancel()
		}
	}
	return len(p), nil
}

// complaint is the standard error of a program, of which it keeps the first line and the last. One of them is usually
// the error.
type complaint struct {
	first bounded
	last  []byte
}

func (c *complaint) Write(p []byte) (int, error) {
	_, _ = c.first.Write(p) // it never fails
	const most = 4 << 10
	c.last = append(c.last, p[max(0, len(p)-most):]...)
	c.last = c.last[max(0, len(c.last)-most):]
	return len(p), nil
}

// String is the first line, and the last one if it is another.
func (c *complaint) String() string {
	first, _, _ := bytes.Cut(bytes.TrimSpace(c.first.kept), []byte("\n"))
	last := bytes.TrimSpace(c.last)
	if k := bytes.LastIndexByte(last, '\n'); k >= 0 {
		last = last[k+1:]
		return fmt.Sprintf("%s … %s", bytes.TrimSpace(first), last[:min(len(last), maxError)])
	}
	return string(first)
}
