// Asks robfig/cron, by which Kubernetes reads the schedule of a CronJob, when expressions fire.
//
//	robfig FROM UNTIL COUNT < EXPRESSIONS     instants are seconds since 1970, UTC
//
// Answers a line for each: `ERR` or at most COUNT instants after FROM and not after UNTIL.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	time.Local = time.UTC
	from, until, count := number(os.Args[1]), number(os.Args[2]), number(os.Args[3])
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		// The parser that Kubernetes uses: five fields and descriptors.
		schedule, err := cron.ParseStandard(lines.Text())
		if err != nil {
			fmt.Fprintln(out, "ERR")
			continue
		}
		var fires []string
		at := time.Unix(from, 0).UTC()
		for int64(len(fires)) < count {
			at = schedule.Next(at)
			// The zero time: it found none within five years.
			if at.IsZero() || at.Unix() > until {
				break
			}
			fires = append(fires, strconv.FormatInt(at.Unix(), 10))
		}
		fmt.Fprintln(out, strings.Join(fires, " "))
	}
}
