// Package receiver has the receivers of alerts: a server that is posted to ([Webhook]), a Prometheus Alertmanager ([Alertmanager]) and
// syslog ([Syslog]). Each is a store of [notify.Alert] values, behind a queue of its own.
//
// # Webhook
//
// A [WebhookWriter] delivers alerts to a server that takes a document by POST, such as a chat, a pager or a script of one's own.
// There is one request for each alert, since that is what nearly all such servers take. Its body is the alert as JSON, as
// [notify.Alert] has it, or what a template makes of it. Every answer 2xx means that the alert is there; its client states
// what other answers mean. An alert whose answer was lost is sent again, so a receiver may see one twice, with the same key,
// status and time.
//
// # Alertmanager
//
// An [AlertmanagerWriter] brings alerts to a Prometheus Alertmanager by its API v2.
//
// An Alertmanager knows an alert by all its labels together. Those are alertname (the kind), element, instance, severity
// and the fixed labels of the settings. Severity is among them, since routes and inhibitions go by it. So that one cause
// is one alert all the same, a writer that sends an alert with another severity than before ends the former one in the
// same request; after a restart, when it does not know the former one, the Alertmanager ends it by itself, because
// nothing refreshes it any more.
//
// An alert has no end until it is resolved. An Alertmanager ends what is not sent again within its resolve_timeout, 5 minutes by
// default; the status open is sent every minute. A sign of life is an alert with the name hopscope-heartbeat that fires as long
// as signs come, and ends [Alertmanager].HeartbeatTimeout behind the last one: a watchdog for its receiver.
//
// All of this may be sent twice without harm.
//
// # Syslog
//
// A [SyslogWriter] delivers alerts to a syslog receiver as messages of RFC 5424: over UDP (RFC 5426), TCP with octet counting (RFC
// 6587 §3.4.1), TLS (RFC 5425), or a datagram socket of the same machine such as /dev/log.
//
// Syslog has no answers. Over UDP a message that is lost is lost without a trace; over TCP and TLS a message counts as
// sent when the system has taken it, and those that were on their way when a connection broke are lost. A local socket
// loses nothing as long as the receiver runs. What must arrive goes to a webhook or an Alertmanager, too.
//
// Messages have the fields of the alert as structured data and its sentence as text. Texts come from the network, so
// control characters become spaces and the structured data is escaped: no text begins a message or a field of its own.
package receiver
