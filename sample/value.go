package sample

import (
	"math"
	"strconv"
	"strings"
)

// unit says what one of a unit word (lower case) is in the field's own unit; false
// for a word that is not one of the field's, which makes the value unknown.
type unit func(word string) (float64, bool)

func megahertz(word string) (float64, bool) {
	switch word {
	case "", "mhz":
		return 1, true
	case "ghz":
		return 1e3, true
	case "khz":
		return 1e-3, true
	case "hz":
		return 1e-6, true
	}
	return 0, false
}

func celsius(word string) (float64, bool) {
	switch word {
	case "", "c", "°c", "℃":
		return 1, true
	}
	return 0, false
}

func watts(word string) (float64, bool) {
	switch word {
	case "", "w":
		return 1, true
	case "mw":
		return 1e-3, true
	case "uw", "µw":
		return 1e-6, true
	}
	return 0, false
}

func percent(word string) (float64, bool) {
	return 1, word == "" || word == "%"
}

// notAValue is the smallest number that stands for "not measured": drivers fill
// unsupported fields with 0xffff or 0xffffffff, and no reading comes near it.
const notAValue = 65535

// read returns the number in s, such as "35.0c", "72.35 W", "(300Mhz)" or
// "1: (500Mhz)"; false for "N/A", "[N/A]", "-" and everything else.
func (u unit) read(s string) (float64, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if open := strings.LastIndexByte(s, '('); open >= 0 && strings.HasSuffix(s, "hz)") {
		s = s[open+1 : len(s)-1] // a clock's level, then the clock itself
	}
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' || end == 0 && (s[end] == '-' || s[end] == '+')) {
		end++
	}
	scale, known := u(strings.TrimSpace(s[end:]))
	n, err := strconv.ParseFloat(s[:end], 64)
	if err != nil || !known {
		return 0, false
	}
	if scale != 1 { // 17521800 uW is 17.5218, not 17.521799999999998
		n = math.Round(n*scale*1e9) / 1e9
	}
	if math.IsNaN(n) || n >= notAValue || n < -273.15 {
		return 0, false
	}
	return n, true
}

// deviceIndex reads "0", "card0", "npu12" or "2944/1".
func deviceIndex(s string) (string, bool) {
	s = strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ#")
	digits := strings.Trim(s, "0123456789") == ""
	return s, s != "" && digits && len(s) < 10
}

// identifier reads a name or UUID; the words tools print for "unknown" are not one.
func identifier(s string) (string, bool) {
	switch strings.ToLower(s) {
	case "", "n/a", "na", "-", "--", "none", "null", "unknown", "err!", "unsupported", "not supported":
		return "", false
	}
	return s, !strings.HasPrefix(s, "[")
}
