package papers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	maxAnswer = 64 << 20 // bytes
	maxError  = 300      // bytes of standard error that a message repeats
	startTime = 10 * time.Second
)

// The ways in which a program gives no answer.
var (
	errTime   = errors.New("no answer in time")
	errLength = fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	errEmpty  = errors.New("no command")
)

// Program is the command of a foreign planner, with its arguments. It runs once for each instance, which is one JSON object on its
// standard input; the answer is its standard output.
type Program struct {
	args []string
	// Limit is the time for one answer. The start of the program has 10 s besides, since interpreters take a while.
	Limit time.Duration
}

// NewProgram makes a program of a command line, whose words are separated by spaces. No shell reads it.
func NewProgram(command string, limit time.Duration) (*Program, error) {
	args := strings.Fields(command)
	if len(args) == 0 {
		return nil, errEmpty
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return nil, err
	}
	return &Program{args: args, Limit: limit}, nil
}

func (p *Program) String() string { return strings.Join(p.args, " ") }

// Answer hands an instance to the program and returns what it answers, with the time from its start to its end. A program that
// takes longer than the limit is killed.
func (p *Program) Answer(ctx context.Context, instance any) (answer []byte, took time.Duration, err error) {
	in, err := json.Marshal(instance)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.Limit+startTime, errTime)
	defer cancel()
	c := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	out, said := &bounded{most: maxAnswer, cancel: cancel}, &bounded{most: maxError}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(append(in, '\n')), out, said
	c.WaitDelay = time.Second // of children that keep the pipes open
	start := time.Now()
	err = c.Run()
	took = time.Since(start)
	switch {
	case out.cut:
		return nil, took, errLength
	case ctx.Err() != nil:
		return nil, took, context.Cause(ctx)
	case err != nil:
		return nil, took, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.kept))
	}
	return out.kept, took, nil
}

// bounded keeps the first bytes of what is written. Its buffer is no embedded one, whose ReadFrom would take all.
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
