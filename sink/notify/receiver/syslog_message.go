package receiver

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hopscope/hopscope/sink/notify"
)

// form is the common part of all messages.
type form struct {
	facility          int
	hostname, app, sd string
	max               int
}

// severities of syslog.
const (
	critical      = 2
	warning       = 4
	syslogNotice  = 5
	informational = 6
)

func severityOf(a *notify.Alert) int {
	switch {
	case a.Status == notify.Heartbeat:
		return informational
	case a.Status == notify.Resolved, a.Status == notify.Test:
		return syslogNotice
	case a.Severity == "critical":
		return critical
	case a.Severity == "warning":
		return warning
	}
	return informational
}

// maxValue bounds a value of the structured data before it is escaped.
const maxValue = 255

// cutSign marks a text that was cut.
const cutSign = " (cut)"

// mark is the byte order mark of a UTF-8 text, which RFC 5424 requires for more than ASCII.
const mark = "\xef\xbb\xbf"

// messageOf makes the message of an alert: at most f.max bytes, without a line break.
func (f *form) messageOf(a *notify.Alert) []byte {
	values := maxValue
	m := f.head(a, values)
	for len(m) > f.max*3/4 && values > 0 { // leave something for the text
		if values /= 2; values < 8 {
			values = 0
		}
		m = f.head(a, values)
	}
	text := cleanText(a.Text)
	if a.Status != notify.Heartbeat {
		text = cleanText(a.Status.String() + ": " + a.Text)
	}
	begin := " "
	if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		begin += mark
	}
	m = append(m, begin...)
	return append(m, cut(text, f.max-len(m))...)
}

// head makes everything before the text, with values of at most n bytes before they are escaped. For 0 there is none but
// the status.
func (f *form) head(a *notify.Alert, n int) []byte {
	id := "-"
	if name := headerWord(a.Kind, 32); name != "" {
		id = name
	} else if a.Status == notify.Heartbeat || a.Status == notify.Test {
		id = a.Status.String()
	}
	m := fmt.Appendf(nil, "<%d>1 %s %s %s - %s [%s", f.facility*8+severityOf(a), stamp(notify.SentAt(a)), f.hostname, f.app, id, f.sd)
	value := func(name, v string) {
		if v == "" {
			return
		}
		m = append(append(append(m, ' '), name...), '=', '"')
		m = append(appendEscaped(m, cut(cleanText(v), n)), '"')
	}
	if n == 0 {
		return fmt.Appendf(m, ` status="%s"]`, a.Status)
	}
	value("status", a.Status.String())
	value("key", a.Key)
	value("kind", a.Kind)
	value("severity", a.Severity)
	value("element", a.Element)
	value("instance", a.Instance)
	value("finding", a.Finding)
	value("headline", a.Headline)
	value("runbook_url", a.Runbook)
	if a.Status != notify.Heartbeat && a.Status != notify.Test {
		value("start", stamp(a.Start))
		if !a.End.IsZero() {
			value("end", stamp(a.End))
		}
		value("value", strconv.FormatFloat(a.Value, 'g', -1, 64))
		value("baseline", strconv.FormatFloat(a.Baseline, 'g', -1, 64))
		value("evidence", strconv.Itoa(a.Evidence))
	}
	value("open", strconv.Itoa(a.Open))
	return append(m, ']')
}

// stamp is a time with at most the six digits that RFC 5424 allows, and - for none.
func stamp(t time.Time) string {
	if y := t.Year(); t.IsZero() || y < 1 || y > 9999 {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z")
}

// appendEscaped writes a value of structured data: a quote, a backslash and a closing bracket have a backslash before them.
func appendEscaped(dst []byte, v string) []byte {
	for i := range len(v) {
		switch c := v[i]; c {
		case '"', '\\', ']':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// cleanText makes a text UTF-8 in one line. Characters that are not printable become spaces.
func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
}

// cut shortens a text to n bytes, at a rune, and marks it with cutSign.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	if n <= len(cutSign) {
		return strings.ToValidUTF8(text[:max(n, 0)], "")
	}
	return strings.ToValidUTF8(text[:n-len(cutSign)], "") + cutSign
}

// headerWord makes a word of a header: ASCII without spaces.
func headerWord(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, text)
	return text[:min(len(text), n)]
}
