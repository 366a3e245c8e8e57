package main

import (
	"errors"
	"fmt"
)

// ranged moves the end of a range of the first axis by the keyboard's way, and
// waits until the chart and the list below it have changed.
const ranged = `new Promise((resolve) => {
	const state = document.getElementById("parallel-state");
	const began = performance.now();
	const observer = new MutationObserver(() => {
		observer.disconnect();
		requestAnimationFrame(() => resolve(performance.now() - began));
	});
	observer.observe(state, { childList: true, characterData: true, subtree: true });
	const slider = document.querySelector('#parallel-ranges input[type="range"]');
	slider.value = String((Number(slider.value) + 135) % 900);
	slider.dispatchEvent(new Event("input"));
})`

// charts measures how long it takes until all charts of the study are drawn, and
// until they answer a range.
func (m *measuring) charts() error {
	var drawn, told, answered []float64
	for range m.options.runs {
		if err := m.browser.forget(); err != nil {
			return err
		}
		err := errors.Join(m.browser.visit(m.browser.path+"/charts"), m.browser.until(`document.getElementById("link-state").textContent === "live"`))
		if err != nil {
			return err
		}
		for expression, into := range map[string]*[]float64{"performance.now()": &drawn, fmt.Sprintf(transferred, true): &told} {
			value, err := m.browser.number(expression)
			if err != nil {
				return err
			}
			*into = append(*into, value)
		}
	}
	for range m.options.runs {
		took, err := m.browser.number(ranged)
		if err != nil {
			return err
		}
		answered = append(answered, took)
	}
	spread("charts: all are drawn, on a first visit", drawn, "ms")
	spread("charts: answers of the API until then", told, "bytes")
	spread("charts: a range of an axis is answered", answered, "ms")
	return m.browser.picture("charts")
}
