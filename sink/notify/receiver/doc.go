// Package receiver delivers alerts to a server that takes requests by POST ([Webhook]), to a Prometheus Alertmanager
// ([Alertmanager]) and to syslog ([Syslog]). Each is a store of [notify.Alert] values, behind a queue of its own.
//
// # Webhook
//
// A [WebhookWriter] delivers alerts to a server that takes a document by POST, such as a chat, a pager or a script.
// Each alert has a request of its own, which is what nearly all such servers take. Its body is the alert as JSON, in
// the form of [notify.Alert], or the output of a template. Any 2xx answer means that the alert was received; the
// writer's client documents the other answers. An alert whose answer was lost is sent again. A receiver may thus see
// one twice, with the same key, status and time.
//
// # Alertmanager
//
// An [AlertmanagerWriter] sends alerts to a Prometheus Alertmanager by its API v2.
//
// An Alertmanager identifies an alert by all its labels together. Those are alertname (the kind), element, instance,
// severity and the fixed labels of the settings. Severity is among them because routes and inhibitions go by it. So
// that one cause stays one alert, a change of severity ends the alert with the former severity in the same request.
// After a restart the writer does not know the former severity. The Alertmanager then ends that alert by itself,
// because nothing refreshes it.
//
// An alert has no end until it is resolved. An Alertmanager ends an alert that is not sent again within its
// resolve_timeout, 5 minutes by default. The status open is sent every minute. A heartbeat is an alert with the name
// hopscope-heartbeat that fires as long as heartbeats come. It ends [Alertmanager].HeartbeatTimeout after the last
// one: a watchdog for its receiver.
//
// All of this may be sent twice without harm.
//
// # Syslog
//
// A [SyslogWriter] delivers alerts to a syslog receiver as messages of RFC 5424. The transport is UDP (RFC 5426), TCP
// with octet counting (RFC 6587 §3.4.1) or TLS (RFC 5425). A datagram socket of the same machine, such as /dev/log, is
// one, too.
//
// Syslog has no acknowledgements. Over UDP a message is lost without a trace. Over TCP and TLS a message counts as
// sent when the system has taken it. Messages in transit when a connection breaks are lost. A local socket loses
// nothing as long as the receiver runs. Alerts that must arrive also go to a webhook or an Alertmanager.
//
// Messages have the fields of the alert as structured data and its sentence as text. Texts come from the network.
// Control characters therefore become spaces and the structured data is escaped, so that no text begins a message or a
// field of its own.
package receiver
