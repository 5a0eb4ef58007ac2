// Package alertmanager brings alerts to a Prometheus Alertmanager by its API v2.
//
// # Identity
//
// An Alertmanager knows an alert by all its labels together. Those are alertname (the kind), element, instance, severity
// and the fixed labels of the settings. Severity is among them, since routes and inhibitions go by it. So that one cause
// is one alert all the same, a [Writer] that sends an alert with another severity than before ends the former one in the
// same request; after a restart, when it does not know the former one, the Alertmanager ends it by itself, because
// nothing refreshes it any more.
//
// # Life
//
// An alert has no end until it is resolved. An Alertmanager ends what is not sent again within its resolve_timeout, 5 minutes by
// default; the status open is sent every minute. A sign of life is an alert with the name hopscope-heartbeat that fires as long
// as signs come, and ends Config.HeartbeatTimeout behind the last one: a watchdog for its receiver.
//
// All of this may be sent twice without harm.
package alertmanager
