package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"
)

// What the program ends with. docs/operating.md says which is which, command by command.
const (
	exitFailed = 1  // it was asked rightly and could not do it
	exitUsage  = 64 // it was asked wrongly: EX_USAGE of sysexits.h. 2 is what a crash of Go gives.
)

// exitStatus is the status of a program that ends with err.
func exitStatus(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(usageError)):
		return exitUsage
	}
	return exitFailed
}

// usageError is a command that was asked wrongly.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// failure is an error that wrongInput leaves as it is.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// wrongInput makes a usageError of what is wrong with something that a flag, an argument or a setting gives: settings, a
// topology, an instance, a plan, a list of names, a token. A file that is not there, that may not be read or that holds
// something else is a wrong question, because asking again gives the same answer. A disk that fails, and an interruption,
// are not.
func wrongInput(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, new(failure)):
		return err
	case errors.As(err, new(syscall.Errno)) && !wrongName(err):
		return err
	}
	return usageError{err}
}

// wrongCapture is wrongInput for data: a capture that is not there is a wrong question, one that is damaged is a failure.
func wrongCapture(err error) error {
	if wrongName(err) {
		return usageError{err}
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

// askRightly makes a usageError of everything that cobra finds wrong with the arguments of c and the commands below, also
// of those that it adds itself. It makes all of them interruptible, too.
func askRightly(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil && !errors.As(err, new(usageError)) {
				return usageError{err}
			} else {
				return err
			}
		}
	}
	if !c.Runnable() && c.HasSubCommands() {
		c.Args = noCommand
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	if c.RunE != nil {
		c.RunE = interruptible(c.RunE)
	}
	for _, sub := range c.Commands() {
		askRightly(sub)
	}
}

// noCommand is the check of arguments of a command that only has commands below it.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("no command %q; %s --help lists them", args[0], c.CommandPath())
	}
	return nil
}
