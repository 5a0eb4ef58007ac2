package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// warner returns the function by which the page warns; nil without a log.
func warner(log *slog.Logger) func(string, ...any) {
	if log == nil {
		return nil
	}
	return log.Warn
}

// commandOf returns the function by which the page commands the control of probes at an address; nil for none.
func commandOf(at string) ask.Command {
	if at == "" {
		return nil
	}
	return func(ctx context.Context, verb string, epoch uint32, author string) error {
		path := "/" + verb
		if epoch > 0 {
			path += fmt.Sprintf("?epoch=%d", epoch)
		}
		body, err := loop.AskAdminAs(ctx, at, http.MethodPost, path, author)
		if errors.Is(err, loop.ErrNoAnswer) {
			return noControlAt(at)
		}
		if err != nil {
			return err
		}
		var reply loop.Reply
		if err := json.Unmarshal(body, &reply); err != nil {
			return fmt.Errorf("%s does not answer as a control does: %w", at, err)
		}
		if !reply.Obeyed {
			return errors.New(printable(reply.Error, false))
		}
		return nil
	}
}

// controlPatience is how long pages wait for the state of a control.
const controlPatience = 2 * time.Second

// stateOf returns the function by which the page asks the control of probes at an address for its state; nil for none.
func stateOf(at string) ask.AskControl {
	if at == "" {
		return nil
	}
	return func(ctx context.Context) (out ask.ControlState, err error) {
		ctx, cancel := context.WithTimeout(ctx, controlPatience)
		defer cancel()
		body, err := loop.AskAdmin(ctx, at, http.MethodGet, "/status")
		if errors.Is(err, loop.ErrNoAnswer) {
			return out, noControlAt(at)
		}
		if err != nil {
			return out, err
		}
		var s loop.Status
		if err := json.Unmarshal(body, &s); err != nil {
			return out, fmt.Errorf("%s does not answer as a control does: %w", at, err)
		}
		return controlState(&s), nil
	}
}

func noControlAt(at string) error {
	return fmt.Errorf("no control answers at %s, which web.control names", at)
}

// controlState is the state of a control as the page shows it.
func controlState(s *loop.Status) ask.ControlState {
	out := ask.ControlState{Phase: printable(string(s.Phase), false), Why: printable(s.Why, false), Epoch: s.Epoch, InForce: s.InForce, Back: s.Before, Paused: s.Paused, DryRun: s.DryRun}
	if s.Epoch != s.InForce {
		out.Back = s.InForce // the one under way is unwanted
	}
	if s.Standby != nil {
		out.StandsBy = "this control stands by: " + printable(s.Standby.Why, false)
	}
	if p := s.Pending; p != nil {
		out.Waiting, out.WaitsWhy = p.Epoch, printable(p.Why, false)
	}
	for _, x := range steer.Systems(s) {
		out.Systems = append(out.Systems, ask.System{System: x.System, State: x.State, Why: x.Why, Decided: x.Decided, Installed: x.Installed, Brought: x.Brought})
	}
	out.Loads = steer.DeviceNames(s.Devices, func(d *control.DeviceStatus) bool { return d.Awaits })
	out.Failed = steer.DeviceNames(s.Devices, func(d *control.DeviceStatus) bool { return d.Device.Kind == control.Switch && d.State == "failed" })
	return out
}

// pageMetric is a metric of the page, with its value.
type pageMetric struct {
	collector.Metric
	value func(*web.Stats) uint64
}

// pageMetrics are those of the page of a collector, a consumer or a console.
var pageMetrics = []pageMetric{
	{collector.Metric{Name: "hopscope_page_unauthorized_total", Kind: collector.Counter, Help: "Requests without a login, or with a wrong one."}, func(s *web.Stats) uint64 { return s.Unauthorized }},
	{collector.Metric{Name: "hopscope_page_forbidden_total", Kind: collector.Counter, Help: "Requests that their role did not allow."}, func(s *web.Stats) uint64 { return s.Forbidden }},
	{collector.Metric{Name: "hopscope_page_hosts_refused_total", Kind: collector.Counter, Help: "Requests by a host name that is not allowed."}, func(s *web.Stats) uint64 { return s.HostsRefused }},
	{collector.Metric{Name: "hopscope_page_cross_site_total", Kind: collector.Counter, Help: "Changes refused as possibly from a page of another site."}, func(s *web.Stats) uint64 { return s.CrossSite }},
	{collector.Metric{Name: "hopscope_page_headers_ignored_total", Kind: collector.Counter, Help: "Requests with headers of a proxy that web.access.trusted_proxies does not list."}, func(s *web.Stats) uint64 { return s.Ignored }},
	{collector.Metric{Name: "hopscope_page_address_tokens_total", Kind: collector.Counter, Help: "Tokens in addresses, where they do not belong."}, func(s *web.Stats) uint64 { return s.AddressTokens }},
	{collector.Metric{Name: "hopscope_page_logins_total", Kind: collector.Counter, Help: "Logins that began a session."}, func(s *web.Stats) uint64 { return s.Logins }},
	{collector.Metric{Name: "hopscope_page_wrong_logins_total", Kind: collector.Counter, Help: "Wrong tokens."}, func(s *web.Stats) uint64 { return s.WrongLogins }},
	{collector.Metric{Name: "hopscope_page_slowed_logins_total", Kind: collector.Counter, Help: "Logins delayed after wrong ones from their address."}, func(s *web.Stats) uint64 { return s.Slowed }},
	{collector.Metric{Name: "hopscope_page_sessions", Kind: collector.Gauge, Help: "Sessions of browsers that are open."}, func(s *web.Stats) uint64 { return uint64(s.Sessions) }},
	{collector.Metric{Name: "hopscope_page_sessions_expired_total", Kind: collector.Counter, Help: "Sessions that ended by their time."}, func(s *web.Stats) uint64 { return s.Expired }},
	{collector.Metric{Name: "hopscope_page_tokens", Kind: collector.Gauge, Help: "Tokens by role."}, func(s *web.Stats) uint64 { return uint64(s.Tokens) }},
	{collector.Metric{Name: "hopscope_page_changes_total", Kind: collector.Counter, Help: "Changes that were made and recorded."}, func(s *web.Stats) uint64 { return s.Changes }},
	{collector.Metric{Name: "hopscope_page_changes_unrecorded_total", Kind: collector.Counter, Help: "Changes refused since they could not be recorded, and failures without a record."}, func(s *web.Stats) uint64 { return s.Unrecorded }},
	{collector.Metric{Name: "hopscope_page_changes_damaged_lines", Kind: collector.Gauge, Help: "Unreadable lines of the log of changes at the start."}, func(s *web.Stats) uint64 { return s.OddLines }},
}

// pageCollector reads them.
type pageCollector struct{ page *web.Server }

// Describe implements prometheus.Collector.
func (c pageCollector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c pageCollector) Collect(out chan<- prometheus.Metric) {
	s := c.page.Stats()
	for _, m := range pageMetrics {
		kind := prometheus.CounterValue
		if m.Kind == collector.Gauge {
			kind = prometheus.GaugeValue
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.Name, m.Help, nil, nil), kind, float64(m.value(&s)))
	}
}
