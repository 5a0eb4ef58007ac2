package pcapfile

// Config says how a capture is replayed.
type Config struct {
	Speed       float64 `yaml:"speed" doc:"Speed of the replay as a multiple of the recorded one; 0 is as fast as possible." range:"0..1000000"`
	BatchFrames int     `yaml:"batch_frames" doc:"Most frames that are handed over at once." range:"1..4096"`
}

// DefaultConfig replays as fast as possible.
func DefaultConfig() Config { return Config{BatchFrames: 256} }

// Validate finds nothing that the ranges do not say.
func (c *Config) Validate() error { return nil }
