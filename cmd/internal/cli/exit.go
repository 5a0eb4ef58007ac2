// Package cli is the common part of the command lines of hopscope and hopscope-bench. It has exit statuses, the checks
// of arguments, the line of progress, the flags for queries of a running program, and the version. It also connects a
// long-running program to its machine: its status for the service manager, limits on frequent log lines, and its memory
// limit.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// These are the exit statuses. docs/operating.md lists them, command by command.
const (
	ExitFailed = 1  // the request was right and could not be carried out
	ExitUsage  = 64 // the request was wrong: EX_USAGE of sysexits.h. 2 is the status of a crashed Go program.
)

// ExitStatus is the status of a program that ends with err.
func ExitStatus(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(UsageError)):
		return ExitUsage
	}
	return ExitFailed
}

// UsageError is a wrong request: flags, arguments, settings or inputs.
type UsageError struct{ Err error }

func (u UsageError) Error() string { return u.Err.Error() }
func (u UsageError) Unwrap() error { return u.Err }

// Usagef makes a [UsageError].
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Failure is an error that [WrongInput] leaves as it is.
type Failure struct{ Err error }

func (f Failure) Error() string { return f.Err.Error() }
func (f Failure) Unwrap() error { return f.Err }

// WrongInput makes a [UsageError] of an error in input that a flag, an argument or a setting names. Input is settings,
// a topology, an instance, a plan, a list of names, or a token. A file that is missing, may not be read or holds
// something else is a usage error, because a retry gives the same answer. A disk that fails, and an interruption, are
// not.
func WrongInput(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, new(Failure)):
		return err
	case errors.As(err, new(syscall.Errno)) && !wrongName(err):
		return err
	}
	return UsageError{err}
}

// WrongCapture is [WrongInput] for data: a capture that is not there is a wrong question, one that is damaged is a failure.
func WrongCapture(err error) error {
	if wrongName(err) {
		return UsageError{err}
	}
	return err
}

// wrongName reports whether the error of opening or reading a file is about its name: nothing that could be read is there.
func wrongName(err error) bool {
	for _, e := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL, syscall.ENXIO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Prepare sets up the root of all commands. Errors are printed by main and have an exit status, and help of an unknown
// command is a usage error. The function wrap is put around the run of each command.
func Prepare(root *cobra.Command, wrap func(Run) Run) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return Usagef("%w (see %s --help)", err, c.CommandPath())
	})
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Say what a command does",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return Usagef("no command %q; %s --help lists them", strings.Join(args, " "), root.Name())
			}
			return c.Help()
		},
	})
	root.InitDefaultCompletionCmd()
	checkArgs(root, wrap)
}

// checkArgs makes a [UsageError] of everything that cobra finds wrong with the arguments of c and the commands below,
// including those that cobra adds itself. It wraps what each of them runs.
func checkArgs(c *cobra.Command, wrap func(Run) Run) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil && !errors.As(err, new(UsageError)) {
				return UsageError{err}
			} else {
				return err
			}
		}
	}
	if !c.Runnable() && c.HasSubCommands() {
		c.Args = NoCommand
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	if c.RunE != nil {
		c.RunE = wrap(c.RunE)
	}
	for _, sub := range c.Commands() {
		checkArgs(sub, wrap)
	}
}

// NoCommand is the check of arguments of a command that only has commands below it.
func NoCommand(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("no command %q; %s --help lists them", args[0], c.CommandPath())
	}
	return nil
}

// Run is the function of a command.
type Run = func(*cobra.Command, []string) error

var errInterrupted = errors.New("interrupted")

// interruptGrace is how long an interrupted command may take to end.
const interruptGrace = time.Second

// Interruptible makes a command end with its context, even while an uninterruptible call waits for a FIFO without a
// writer or a missing file system. A command for which orderly returns true takes the time that it needs; orderly may
// be nil.
func Interruptible(run Run, orderly func(context.Context) bool) Run {
	return func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		ended := make(chan error, 1)
		go func() {
			err := run(c, args)
			if err == context.Canceled { // and nothing else
				err = errInterrupted
			}
			ended <- err
		}()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(interruptGrace):
		}
		if orderly != nil && orderly(ctx) {
			return <-ended
		}
		return errInterrupted
	}
}
