package main

import (
	"context"

	"github.com/hopscope/hopscope/cmd/internal/cli"
)

// The rules of the command line, which hopscope-bench has too.
const (
	exitFailed = cli.ExitFailed
	exitUsage  = cli.ExitUsage
)

type (
	usageError = cli.UsageError
	asker      = cli.Asker
)

var (
	exitStatus   = cli.ExitStatus
	wrongInput   = cli.WrongInput
	wrongCapture = cli.WrongCapture
	noCommand    = cli.NoCommand
	checkFormat  = cli.CheckFormat
	exactArgs    = cli.ExactArgs
	maxArgs      = cli.MaxArgs
	plural       = cli.Plural
	showProgress = cli.ShowProgress
)

// usagef makes a usageError.
func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

// interruptible makes a command end on a signal, unless it has begun what it brings to an orderly end.
func interruptible(run cli.Run) cli.Run {
	return cli.Interruptible(run, func(ctx context.Context) bool { return signalsOf(ctx).orderly.Load() })
}

func version() string { return cli.Version(release) }
