package access

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwarding are the headers of a trusted proxy that are ignored from any other sender.
var forwarding = []string{"X-Forwarded-For", "X-Forwarded-Proto"}

// client is where a request comes from.
type client struct {
	addr    netip.Addr // of the client: that which the last trusted proxy forwards
	proxied bool       // the connection is that of a trusted proxy
	secure  bool       // over TLS, up to here or up to the proxy
}

// clientOf returns where a request comes from. Headers of a sender that is no trusted proxy are ignored and counted.
func (g *Gate) clientOf(r *http.Request) (c client) {
	c.secure = r.TLS != nil || g.o.TLS
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		c.addr = at.Addr().Unmap().WithZone("")
	}
	if !g.trusts(c.addr) {
		if g.forwards(r) {
			g.count.headersIgnored.Add(1)
		}
		return c
	}
	c.proxied = true
	if strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		c.secure = true
	}
	// Each proxy adds the address that it saw at the end. What is before the last address that is no trusted proxy is the client's own word.
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(hops) {
		text = strings.TrimSpace(text)
		a, err := netip.ParseAddr(text)
		if err != nil {
			if at, err2 := netip.ParseAddrPort(text); err2 == nil {
				a, err = at.Addr(), nil
			}
		}
		if err != nil {
			break
		}
		if c.addr = a.Unmap().WithZone(""); !g.trusts(c.addr) {
			break
		}
	}
	return c
}

func (g *Gate) trusts(a netip.Addr) bool {
	return a.IsValid() && slices.ContainsFunc(g.proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// forwards reports whether a request has a header that a trusted proxy would send.
func (g *Gate) forwards(r *http.Request) bool {
	return slices.ContainsFunc(forwarding, func(h string) bool { return r.Header.Get(h) != "" }) ||
		g.o.Config.UserHeader != "" && r.Header.Get(g.o.Config.UserHeader) != "" || g.o.Config.GroupsHeader != "" && r.Header.Get(g.o.Config.GroupsHeader) != ""
}

// proxyUser returns the user that a trusted proxy names. ok is false where there is none.
func (g *Gate) proxyUser(r *http.Request, c client) (id Identity, ok bool, err error) {
	conf := &g.o.Config
	if conf.UserHeader == "" || !c.proxied {
		return id, false, nil
	}
	list := r.Header.Values(conf.UserHeader)
	if len(list) == 0 || list[0] == "" {
		return id, false, nil
	}
	if len(list) > 1 || checkName(list[0]) != nil {
		return id, false, &Refusal{Status: http.StatusBadRequest, Text: "the header " + conf.UserHeader + " is there more than once, or is no name: let the proxy remove it from what clients send"}
	}
	var groups []string
	if conf.GroupsHeader != "" {
		for _, text := range r.Header.Values(conf.GroupsHeader) {
			for group := range strings.SplitSeq(text, ",") {
				groups = append(groups, strings.TrimSpace(group))
			}
		}
	}
	id = Identity{User: list[0], Login: ByProxy, Role: conf.role(list[0], groups)}
	if id.Role == NoRole {
		return id, false, noRole(id.User)
	}
	return id, true, nil
}

// noRole refuses a user that the settings do not name.
func noRole(user string) error {
	return &Refusal{Status: http.StatusForbidden, Text: user + " is logged in, but has no role here: an administrator adds the user or one of its groups to web.access.viewers, operators or admins"}
}
