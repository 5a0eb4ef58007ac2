// Package syslog delivers alerts to a syslog receiver as messages of RFC 5424: over UDP (RFC 5426), TCP with octet counting (RFC
// 6587 §3.4.1), TLS (RFC 5425), or a datagram socket of the same machine such as /dev/log.
//
// Syslog has no answers. Over UDP a message that is lost is lost without a trace; over TCP and TLS a message counts as
// sent when the system has taken it, and those that were on their way when a connection broke are lost. A local socket
// loses nothing as long as the receiver runs. What must arrive goes to a webhook or an Alertmanager, too.
//
// Messages have the fields of the alert as structured data and its sentence as text. Texts come from the network, so
// control characters become spaces and the structured data is escaped: no text begins a message or a field of its own.
package syslog
