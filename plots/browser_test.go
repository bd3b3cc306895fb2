package plots

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gdisim/result"
)

// browser is a session of a headless Chromium, driven by the WebDriver protocol.
type browser struct {
	t    *testing.T
	base string
}

// startBrowser skips the test where there is no Chromium with its driver.
func startBrowser(t *testing.T) *browser {
	driver, err := exec.LookPath("chromedriver")
	if err != nil {
		t.Skip("no chromedriver (Debian: chromium-driver)")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium (Debian: chromium)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	cmd := exec.Command(driver, fmt.Sprintf("--port=%d", port), "--log-level=SEVERE")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	b := &browser{t: t, base: fmt.Sprintf("http://127.0.0.1:%d", port)}
	for range 100 {
		r, err := http.Get(b.base + "/status")
		if err == nil {
			_ = r.Body.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	var session struct{ SessionID string }
	b.do("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": "chrome", "goog:loggingPrefs": map[string]string{"browser": "ALL"},
		"goog:chromeOptions": map[string]any{"binary": chromium, "args": []string{
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir(),
		}},
	}}}, &session)
	b.base += "/session/" + session.SessionID
	t.Cleanup(func() { b.do("DELETE", "", nil, nil) })
	return b
}

// do sends a command and decodes its value.
func (b *browser) do(method, path string, in, out any) {
	b.t.Helper()
	var body io.Reader
	if method == "POST" {
		if in == nil {
			in = struct{}{}
		}
		j, err := json.Marshal(in)
		if err != nil {
			b.t.Fatal(err)
		}
		body = bytes.NewReader(j)
	}
	req, err := http.NewRequest(method, b.base+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var reply struct{ Value json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&reply); err != nil {
		b.t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %s", method, path, reply.Value)
	}
	if out != nil {
		if err := json.Unmarshal(reply.Value, out); err != nil {
			b.t.Fatalf("%s: %v", reply.Value, err)
		}
	}
}

// eval runs a script's body and returns what it returns.
func (b *browser) eval(script string) any {
	b.t.Helper()
	var out any
	b.do("POST", "/execute/sync", map[string]any{"script": script, "args": []any{}}, &out)
	return out
}

func (b *browser) want(script string, want any) {
	b.t.Helper()
	if got := b.eval("return " + script); got != want {
		b.t.Errorf("%s is %v, want %v", script, got, want)
	}
}

// shoot keeps a screenshot where GDISIM_SHOTS names a folder.
func (b *browser) shoot(name string) {
	var s string
	b.do("GET", "/screenshot", nil, &s)
	img, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(img) < 1000 {
		b.t.Errorf("screenshot %s: %d bytes, %v", name, len(img), err)
	}
	if dir := os.Getenv("GDISIM_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), img, 0o644); err != nil {
			b.t.Error(err)
		}
	}
}

// size makes the page that wide; height 0 is all of it.
func (b *browser) size(w, h int, mobile bool) {
	if h == 0 {
		b.metrics(w, 800, mobile)
		h = int(b.eval("return document.documentElement.scrollHeight").(float64))
	}
	b.metrics(w, h, mobile)
}

func (b *browser) metrics(w, h int, mobile bool) {
	b.cdp("Emulation.setDeviceMetricsOverride", map[string]any{"width": w, "height": h, "deviceScaleFactor": 1, "mobile": mobile})
}

func (b *browser) cdp(cmd string, params map[string]any) {
	b.t.Helper()
	b.do("POST", "/goog/cdp/execute", map[string]any{"cmd": cmd, "params": params}, nil)
}

func (b *browser) errors() []string {
	var entries []struct{ Level, Message string }
	b.do("POST", "/se/log", map[string]string{"type": "browser"}, &entries)
	var out []string
	for _, e := range entries {
		out = append(out, e.Level+": "+e.Message)
	}
	return out
}

// TestReportInBrowser opens the report: it switches, zooms and prints, and says
// nothing on the console.
func TestReportInBrowser(t *testing.T) {
	b := startBrowser(t)
	page := filepath.Join(t.TempDir(), "report.html")
	var html bytes.Buffer
	if err := Report(&html, []*result.Result{sizes(12)}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, html.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	b.do("POST", "/url", map[string]string{"url": "file://" + page}, nil)
	for _, w := range []int{400, 800, 1400} {
		b.size(w, 0, w < 500)
		b.want("document.documentElement.scrollWidth <= innerWidth", true)
		b.shoot(fmt.Sprintf("light-%d.png", w))
	}
	b.size(1100, 900, false)

	// The switch between paths, by keyboard.
	const shown = `[...document.querySelectorAll(".panel")].filter(p => getComputedStyle(p).display !== "none").map(p => p.querySelector("h3").textContent).join()`
	b.want(shown, "gda")
	b.eval(`document.getElementById("switch-0").focus()`)
	b.do("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "k", "actions": []any{
		map[string]string{"type": "keyDown", "value": "\ue014"}, map[string]string{"type": "keyUp", "value": "\ue014"},
	}}}}, nil)
	b.want(shown, "proxy")

	// Zoom: by button, by key and by dragging; hover.
	b.want(`document.querySelectorAll("figure .tools").length >= 2`, true)
	for _, id := range []string{"latency", "cdf"} {
		fig := fmt.Sprintf(`[...document.querySelectorAll("figure")].find(f => f.querySelector(".data") && f.querySelector(".data").textContent.includes('"kind":"%s"'))`, id)
		b.want(fig+`.querySelector(".live").hidden`, true)
		b.eval(fig + `.querySelector("button").click()`)
		b.want(fig+`.querySelectorAll(".live canvas").length`, 1.0)
		span := fig + `.chart().scales.x.max - ` + fig + `.chart().scales.x.min`
		full := b.eval("return " + span).(float64)
		b.eval(fig + `.querySelectorAll("button")[1].click()`)
		in := b.eval("return " + span).(float64)
		if in >= full {
			t.Errorf("%s: zooming in goes from %g to %g", id, full, in)
		}
		b.eval(fig + `.querySelectorAll("button")[3].click()`)
		if all := b.eval("return " + span).(float64); all < full*0.99 || all > full*1.01 {
			t.Errorf("%s: show all goes from %g to %g", id, full, all)
		}
		b.eval(fig + `.querySelector(".live").scrollIntoView({block: "center"}); ` + fig + `.querySelector(".live").focus()`)
		b.do("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "k", "actions": []any{
			map[string]string{"type": "keyDown", "value": "+"}, map[string]string{"type": "keyUp", "value": "+"},
		}}}}, nil)
		if k := b.eval("return " + span).(float64); k >= full {
			t.Errorf("%s: the plus key goes from %g to %g", id, full, k)
		}
		b.eval(fig + `.querySelectorAll("button")[3].click()`)
		b.drag(b.eval(`const r = ` + fig + `.querySelector(".u-over").getBoundingClientRect(); return [r.left + r.width * 0.3, r.left + r.width * 0.6, r.top + r.height / 2]`).([]any))
		if d := b.eval("return " + span).(float64); d >= full {
			t.Errorf("%s: dragging goes from %g to %g", id, full, d)
		}
		b.want(fig+`.querySelector(".u-legend").textContent.includes("µs")`, true)
	}
	b.shoot("zoomed.png")

	b.cdp("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": "dark"}}})
	b.want(`getComputedStyle(document.body).backgroundColor`, "rgb(25, 25, 27)")
	b.size(1100, 0, false)
	b.shoot("dark.png")

	var pdf string
	b.do("POST", "/print", nil, &pdf)
	data, err := base64.StdEncoding.DecodeString(pdf)
	if err != nil || !bytes.HasPrefix(data, []byte("%PDF")) || len(data) < 20_000 {
		t.Errorf("PDF of %d bytes, %v", len(data), err)
	}
	if dir := os.Getenv("GDISIM_SHOTS"); dir != "" {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "report.pdf"), data, 0o644), os.WriteFile(filepath.Join(dir, "report.html"), html.Bytes(), 0o644))
		if err != nil {
			t.Error(err)
		}
	}
	if e := b.errors(); len(e) > 0 {
		t.Errorf("the console says:\n%s", strings.Join(e, "\n"))
	}
}

// drag presses at x0, moves to x1 and lets go.
func (b *browser) drag(at []any) {
	move := func(x, y any, ms int) map[string]any {
		return map[string]any{"type": "pointerMove", "duration": ms, "origin": "viewport", "x": int(x.(float64)), "y": int(y.(float64))}
	}
	b.do("POST", "/actions", map[string]any{"actions": []any{map[string]any{
		"type": "pointer", "id": "m", "parameters": map[string]string{"pointerType": "mouse"}, "actions": []any{
			move(at[0], at[2], 0), map[string]any{"type": "pointerDown", "button": 0}, move(at[1], at[2], 50), map[string]any{"type": "pointerUp", "button": 0},
		},
	}}}, nil)
}
