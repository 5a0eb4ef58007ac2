package receiver

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

// WebhookWriter posts alerts.
type WebhookWriter struct {
	heartbeats bool
	client     *httpClient
	body       *body
}

// newWebhook reads the secrets, the certificates and the template. It does not connect.
func newWebhook(conf Webhook) (*WebhookWriter, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	client, clientErr := conf.client()
	body, bodyErr := conf.body()
	if err := errors.Join(clientErr, bodyErr); err != nil {
		return nil, err
	}
	return &WebhookWriter{heartbeats: conf.Heartbeats, client: client, body: body}, nil
}

// Name is "webhook".
func (w *WebhookWriter) Name() string { return "webhook" }

// Key implements [sink.Keyed].
func (w *WebhookWriter) Key(p *sink.Point) string { return notify.PointKey(p) }

// Close ends idle connections.
func (w *WebhookWriter) Close() error { return w.client.Close() }

// Write posts the alerts of a batch, each by itself. An error names the remaining ones.
func (w *WebhookWriter) Write(ctx context.Context, b *sink.Batch) error {
	return notify.Each(ctx, b, w.send)
}

func (w *WebhookWriter) send(ctx context.Context, a *notify.Alert) error {
	if a.Status == notify.Open || a.Status == notify.Heartbeat && !w.heartbeats {
		return notify.ErrUnwanted
	}
	body, err := w.body.bodyOf(a)
	if err != nil {
		return &sink.PermanentError{Err: fmt.Errorf("webhook: alert %q: %w", a.Key, err)}
	}
	return w.client.post(ctx, body)
}
