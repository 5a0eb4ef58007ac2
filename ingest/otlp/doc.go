// Package otlp receives metrics of OpenTelemetry, over gRPC and over HTTP. It takes requests off their transport, bounded in
// size and number before anything is trusted, and hands them on as protocol buffers; their reader decides the answers to
// senders. Where all is full a sender is asked to come again, and keeps what it has.
package otlp
