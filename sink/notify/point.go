package notify

import (
	"encoding/json"
	"fmt"

	"github.com/hopscope/hopscope/sink"
)

// Measurement is that of the points which alerts travel as, through queues and spools.
const Measurement = "alert"

// Batch puts alerts into a batch, each as a point. Their times distinguish alerts of one window.
func Batch(alerts []Alert) *sink.Batch {
	b := &sink.Batch{}
	for i := range alerts {
		a := &alerts[i]
		text, err := json.Marshal(a)
		if err != nil { // a time outside of the years that JSON knows
			continue
		}
		at := a.Time
		if at.IsZero() {
			at = a.Updated
		}
		b.Points = append(b.Points, sink.Point{Measurement: Measurement, Tags: []sink.Tag{{Key: "status", Value: a.Status.String()}},
			Fields: []sink.Field{sink.StringField("alert", string(text))}, Time: at.UnixNano() + int64(i)})
	}
	return b
}

// Alerts takes the alerts out of a batch. Points of other measurements are left aside; one that cannot be read is an error.
func Alerts(b *sink.Batch) (alerts []Alert, err error) {
	for i := range b.Points {
		p := &b.Points[i]
		if p.Measurement != Measurement || len(p.Fields) != 1 {
			continue
		}
		var a Alert
		if err := json.Unmarshal([]byte(p.Fields[0].Str), &a); err != nil {
			return alerts, fmt.Errorf("alert %d of %d: %w", i+1, len(b.Points), err)
		}
		alerts = append(alerts, a)
	}
	return alerts, nil
}

// PointKey names the alert of a point: messages about one alert have to be sent in their order.
func PointKey(p *sink.Point) string {
	var a struct {
		Status Status
		Key    string
	}
	if len(p.Fields) != 1 || json.Unmarshal([]byte(p.Fields[0].Str), &a) != nil {
		return ""
	}
	if a.Key == "" {
		return a.Status.String()
	}
	return "alert " + a.Key
}
