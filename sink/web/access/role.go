package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Role is what a client may do. Each role may do what those before it may.
type Role uint8

// The roles.
const (
	NoRole   Role = iota // nothing
	Viewer               // read
	Operator             // mute, acknowledge, comment, command the control of probes
	Admin                // make and revoke tokens, end sessions
)

var roleNames = [...]string{"none", "viewer", "operator", "admin"}

func (r Role) String() string { return roleNames[min(int(r), len(roleNames)-1)] }

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It takes the three roles alone.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}

// ParseRole reads the name of a role.
func ParseRole(text string) (Role, error) {
	if i := slices.Index(roleNames[:], text); i > 0 {
		return Role(i), nil
	}
	return NoRole, fmt.Errorf("role: %.40q is not viewer, operator or admin", text)
}

// Members lists the users and groups that have a role.
type Members struct {
	Viewers   []string `yaml:"viewers" doc:"Logins that are viewers, and read: user:NAME, group:NAME, or * for each."`
	Operators []string `yaml:"operators" doc:"Logins that are operators, and mute, acknowledge, comment and command the control of probes: user:NAME or group:NAME."`
	Admins    []string `yaml:"admins" doc:"Logins that are admins, and make tokens and end sessions too: user:NAME or group:NAME."`
}

func (m *Members) validate() (errs []error) {
	for _, list := range []struct {
		key   string
		names []string
	}{{"viewers", m.Viewers}, {"operators", m.Operators}, {"admins", m.Admins}} {
		for i, text := range list.names {
			kind, name, _ := strings.Cut(text, ":")
			switch {
			case text == "*" && list.key == "viewers":
			case text == "*":
				errs = append(errs, fmt.Errorf("%s[%d]: * is for viewers alone; name users and groups", list.key, i))
			case kind != "user" && kind != "group" || name == "":
				errs = append(errs, fmt.Errorf("%s[%d]: %q is neither user:NAME nor group:NAME", list.key, i, text))
			}
		}
	}
	return errs
}

// any reports whether some login has a role.
func (m *Members) any() bool { return len(m.Viewers)+len(m.Operators)+len(m.Admins) > 0 }

// role returns the highest role of a user in groups.
func (m *Members) role(user string, groups []string) Role {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(text string) bool {
			kind, name, _ := strings.Cut(text, ":")
			switch kind {
			case "*":
				return true
			case "user":
				return name == user
			}
			return slices.Contains(groups, name)
		})
	}
	switch {
	case has(m.Admins):
		return Admin
	case has(m.Operators):
		return Operator
	case has(m.Viewers):
		return Viewer
	}
	return NoRole
}

// maxName bounds the name of a user, a group or a token, in bytes.
const maxName = 128

var errName = errors.New("a name has 1 to 128 bytes, all printable")

// checkName refuses what is no name.
func checkName(name string) error {
	if name == "" || len(name) > maxName || !printable(name) {
		return errName
	}
	return nil
}
