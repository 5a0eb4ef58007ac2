package pcapfile

// Config is the settings of the replay of a capture.
type Config struct {
	Speed       float64 `yaml:"speed" doc:"Replay speed as a multiple of the recorded one; 0 is as fast as possible." range:"0..1000000"`
	BatchFrames int     `yaml:"batch_frames" doc:"Most frames that are handed over at once." range:"1..4096"`
}

// DefaultConfig replays as fast as possible.
func DefaultConfig() Config { return Config{BatchFrames: 256} }

// Validate returns nil: the ranges of the fields are all there is to check.
func (c *Config) Validate() error { return nil }
