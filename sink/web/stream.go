package web

import (
	"errors"
	"net/http"
	"os"
	"time"
)

const (
	heartbeat     = 10 * time.Second // the page calls the connection lost after 2.5 of them
	streamTimeout = 10 * time.Second // for one write to a client
)

// serveEvents sends the stream of server-sent events (WHATWG HTML §9.2). It begins with "hello" and the id of the last
// event. A client that sends the last event it saw gets the events since then. "reset" asks a client whose last event
// is no longer kept to load everything anew. "ping" comes when there is no other event, "bye" when the server stops.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streamSlots <- struct{}{}:
		defer func() { <-s.streamSlots }()
	default:
		s.counters.streamsRefused.Add(1)
		w.Header().Set("Retry-After", "5")
		problem(w, http.StatusServiceUnavailable, "too many open event streams")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects the answer first would never pass it on
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	out := streamWriter{w: w, rc: http.NewResponseController(w)}

	last := r.Header.Get("Last-Event-ID")
	if q := r.URL.Query().Get("last_event_id"); last == "" {
		last = q
	}
	cursor, known := s.ring.parse(last)
	missed, next, changed, ok := s.ring.after(cursor, nil)
	switch {
	case last == "":
		out.event("hello", s.ring.id(next), nil)
	case !known || !ok:
		out.event("reset", s.ring.id(next), nil)
	default:
		for i := range missed {
			out.event(missed[i].kind, s.ring.id(missed[i].number), missed[i].data)
		}
		out.event("resumed", s.ring.id(next), nil)
	}
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for {
		if err := out.flush(); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.counters.streamsDropped.Add(1)
			}
			return
		}
		if !s.gate.Still(r) {
			out.event("bye", "", nil)
			_ = out.flush() // the client may be gone, and this stream ends anyway
			return
		}
		cursor = next
		select {
		case <-r.Context().Done():
			return
		case <-s.stopping:
			out.event("bye", "", nil)
			_ = out.flush() // the client may be gone, and this stream ends anyway
			return
		case <-timer.C:
			out.event("ping", "", nil)
		case <-changed:
			missed, next, changed, ok = s.ring.after(cursor, missed[:0])
			if !ok { // so slow that the ring went past it
				s.counters.streamsDropped.Add(1)
				return
			}
			for i := range missed {
				out.event(missed[i].kind, s.ring.id(missed[i].number), missed[i].data)
			}
		}
		timer.Reset(heartbeat)
	}
}

// streamWriter collects events until flush.
type streamWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

// event appends one event. data is one line of JSON, or nothing.
func (o *streamWriter) event(kind, id string, data []byte) {
	if id != "" {
		o.buf = append(append(append(o.buf, "id: "...), id...), '\n')
	}
	o.buf = append(append(append(o.buf, "event: "...), kind...), "\ndata: "...)
	if len(data) == 0 {
		data = []byte("{}") // browsers do not deliver an event without data
	}
	o.buf = append(append(o.buf, data...), "\n\n"...)
}

func (o *streamWriter) flush() error {
	if err := o.rc.SetWriteDeadline(time.Now().Add(streamTimeout)); err != nil {
		return err
	}
	_, err := o.w.Write(o.buf)
	o.buf = o.buf[:0]
	if err != nil {
		return err
	}
	return o.rc.Flush()
}
