package kafka

// Logger takes the messages about the program's place in a group, with alternating keys and values. A
// [log/slog.Logger] is one. Writers to Kafka, which share this package, have none.
type Logger interface {
	Info(msg string, args ...any)
	Warn(msg string, args ...any)
}

// silent is the logger of a program that has none.
type silent struct{}

func (silent) Info(string, ...any) {}
func (silent) Warn(string, ...any) {}

// orSilent returns l, or a silent logger for nil.
func orSilent(l Logger) Logger {
	if l == nil {
		return silent{}
	}
	return l
}
