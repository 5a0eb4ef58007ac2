package ask

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/notify"
)

// Get requests a path of the page of a running program, and decodes the JSON answer into a value.
type Get func(ctx context.Context, path string, into any) error

// RequestError is a wrong request: an argument that names no finding, or one that cannot be accepted.
type RequestError struct{ text string }

func (e *RequestError) Error() string { return e.text }

func wrong(format string, args ...any) error { return &RequestError{fmt.Sprintf(format, args...)} }

// Names asks for the names of nodes. A program that does not answer that, such as an older one, has no names.
func (get Get) Names(ctx context.Context) *names.Names {
	var d names.Document
	if err := get(ctx, "/api/names", &d); err != nil {
		return nil
	}
	return d.Names()
}

// WriteDialects lists the exporters that the collector cannot read by its settings. It writes nothing if the collector
// does not answer; an earlier request has reported that.
func (get Get) WriteDialects(ctx context.Context, w io.Writer) {
	var status struct {
		Settings []struct{ Name, Value string }
	}
	if get(ctx, "/api/status", &status) != nil {
		return
	}
	for _, s := range status.Settings {
		if strings.HasPrefix(s.Name, "reports of ") {
			fmt.Fprintln(w, s.Value)
		}
	}
}

var findingID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Alert returns the name of the alert that id names: that of a finding's cause, or of the finding. The id is that of an open
// finding, or the name of its alert. If the page does not answer, a name is returned with an [UncheckedError].
func (get Get) Alert(ctx context.Context, id string) (string, error) {
	if err := CheckID(id); err != nil {
		return "", err
	}
	var got struct{ Open []Finding }
	err := get(ctx, "/api/findings", &got)
	if err == nil {
		return AlertOf(got.Open, id)
	}
	if findingID.MatchString(id) {
		return "", err
	}
	f, _ := parseAlert(id) // CheckID has read it
	return notify.Key(&f), &UncheckedError{err}
}

// UncheckedError is why it is not known whether an alert is of an open finding.
type UncheckedError struct{ Err error }

func (e *UncheckedError) Error() string { return "whether it is open is not known: " + e.Err.Error() }

// Unwrap returns why the page did not answer.
func (e *UncheckedError) Unwrap() error { return e.Err }

// AlertOf is [Get.Alert] among the open findings in a list.
func AlertOf(open []Finding, id string) (string, error) {
	if err := CheckID(id); err != nil {
		return "", err
	}
	name := id
	if f, err := parseAlert(id); err == nil {
		name = notify.Key(&f)
	}
	lead := leads(open)
	var alerts []string
	for i := range open {
		own, err := open[i].Finding()
		if err != nil {
			return "", err
		}
		x, err := open[lead[i]].Finding()
		if err != nil {
			return "", err
		}
		if alert := notify.Key(&x); open[i].ID == id || notify.Key(&own) == name {
			return alert, nil
		} else if !slices.Contains(alerts, alert) {
			alerts = append(alerts, alert)
		}
	}
	return "", wrong("no finding %s is open: %s", name, openNow(alerts))
}

// mostOpen is the number of open alerts that an error names.
const mostOpen = 20

// openNow lists open alerts, for an error.
func openNow(alerts []string) string {
	switch n := len(alerts); {
	case n == 0:
		return "none is"
	case n > mostOpen:
		return fmt.Sprintf("these are, and %d more: %s", n-mostOpen, strings.Join(alerts[:mostOpen], ", "))
	}
	return "these are: " + strings.Join(alerts, ", ")
}

// CheckID refuses what is neither the id of a finding nor the name of an alert.
func CheckID(id string) error {
	if findingID.MatchString(id) {
		return nil
	}
	_, err := parseAlert(id)
	return err
}

// Levels returns the names of the alerts about levels that id names: that of a finding, or those of the findings that a cause
// explains.
func (get Get) Levels(ctx context.Context, id string) (alerts []string, err error) {
	var all []inference.Finding
	if findingID.MatchString(id) {
		open, named, err := get.finding(ctx, id)
		if err != nil {
			return nil, err
		}
		for i := range open {
			if open[i].ID != named.ID && open[i].Cause != named.ID {
				continue
			}
			f, err := open[i].Finding()
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
	} else {
		f, err := parseAlert(id)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	for i := range all {
		if events.Acceptable(all[i].Kind) {
			alerts = append(alerts, notify.Key(&all[i]))
		}
	}
	slices.Sort(alerts)
	if alerts = slices.Compact(alerts); len(alerts) == 0 {
		return nil, wrong("%s is about no level that could be normal: acknowledge it with hopscope findings ack, or mute it", id)
	}
	return alerts, nil
}

// Open returns the open findings, as far as they can be read.
func (get Get) Open(ctx context.Context) ([]inference.Finding, error) {
	var got struct{ Open []Finding }
	if err := get(ctx, "/api/findings", &got); err != nil {
		return nil, err
	}
	return OpenFindings(got.Open), nil
}

// finding returns all open findings and the one with an id.
func (get Get) finding(ctx context.Context, id string) ([]Finding, *Finding, error) {
	var got struct{ Open []Finding }
	if err := get(ctx, "/api/findings", &got); err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(got.Open, func(f Finding) bool { return f.ID == id })
	if i < 0 {
		return nil, nil, wrong("no finding %s is open; hopscope findings --format json lists the ids", id)
	}
	return got.Open, &got.Open[i], nil
}

// parseAlert reads the name of an alert.
func parseAlert(text string) (inference.Finding, error) {
	f, err := notify.ParseKey(text)
	if err != nil {
		return f, wrong("%q is neither an id of 16 hexadecimal digits nor the name of an alert: %v", text, err)
	}
	return f, nil
}
