//go:build !linux

package agent

import (
	"context"
	"errors"
)

// Run measures, on Linux.
func Run(context.Context, Config) (Result, error) {
	return Result{}, errors.New("the agent sends over packet sockets (AF_PACKET), which only Linux has")
}
