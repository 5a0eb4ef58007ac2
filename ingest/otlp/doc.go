// Package otlp receives metrics of OpenTelemetry, over gRPC and over HTTP. It takes requests off their transport,
// bounded in size and number before anything is trusted, and hands them on as protocol buffers. Their reader decides
// the answers to senders. When everything is full, a sender is asked to try again, and keeps its data.
package otlp
