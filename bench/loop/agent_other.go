//go:build !linux

package loop

import (
	"context"
	"errors"
)

// Agent measures, on Linux.
func Agent(context.Context, AgentConfig) (AgentResult, error) {
	return AgentResult{}, errors.New("the agent sends over packet sockets (AF_PACKET), which only Linux has")
}
