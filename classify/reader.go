package classify

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// LogStream is the stream name of hits in a log read by ClassifyReader.
const LogStream = "log"

// ClassifyReader reads a whole log, plain or gzip (told by its first bytes), and
// returns the verdict on it. A log that breaks off gives the verdict on what was
// there, and the error.
func ClassifyReader(c Config, r io.Reader) (Result, error) {
	s := New(c)
	in := bufio.NewReaderSize(r, 64<<10)
	from := io.Reader(in)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return s.Result(), fmt.Errorf("read compressed log: %w", err)
		}
		from = z
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{s.Stream(LogStream)}, struct{ io.Reader }{from}, make([]byte, 64<<10))
	result := s.Result()
	if err != nil {
		return result, fmt.Errorf("read log: %w", err)
	}
	return result, s.Err()
}
