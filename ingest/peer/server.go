package peer

import (
	"fmt"
	"net/netip"
	"strings"
)

// Bounds of a token: shorter ones can be guessed, and no header carries longer ones.
const (
	minToken = 16
	maxToken = 1024
)

// Token reads the file of a token that clients have to show, of 16 to 1,024 characters of printable ASCII. White space around it
// is not part of it.
func Token(path string) (string, error) {
	t, err := readSecret(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if len(t) < minToken || len(t) > maxToken {
		return "", fmt.Errorf("token in %s has %d characters, outside %d..%d", path, len(t), minToken, maxToken)
	}
	for i := range len(t) {
		if t[i] <= ' ' || t[i] >= 0x7f {
			return "", fmt.Errorf("token in %s: character %d is not printable ASCII", path, i+1)
		}
	}
	return t, nil
}

// Loopback reports whether a host is of this machine alone: "localhost" or a loopback address, with or without brackets.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}
