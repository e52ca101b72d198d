package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var units = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

// ParseSize reads a number of bytes, such as "4096", "256KiB" or "8MiB".
func ParseSize(s string) (int64, error) {
	digits, unit := s, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size; write bytes, or a whole number of KiB, MiB, GiB or TiB, such as 256KiB", s)
	}
	return n * unit, nil
}

// FormatSize writes what ParseSize reads, in the largest unit that is whole.
func FormatSize(n int64) string {
	for i := len(units) - 1; i >= 0; i-- {
		if u := units[i]; n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}
