// What the page learns from the browser: the colour scheme, the width of an element, and how many
// pixels a canvas has.
import type {RefObject} from 'preact';
import {useEffect, useLayoutEffect, useState} from 'preact/hooks';

const kDarkQuery = '(prefers-color-scheme: dark)';

export function useDark(): boolean {
  const [dark, setDark] = useState(() => matchMedia(kDarkQuery).matches);
  useEffect(() => {
    const query = matchMedia(kDarkQuery);
    const listen = () => setDark(query.matches);
    query.addEventListener('change', listen);
    return () => query.removeEventListener('change', listen);
  }, []);
  return dark;
}

export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const target = element.current!;
    setWidth(target.clientWidth);
    const observer = new ResizeObserver(() => setWidth(target.clientWidth));
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return width;
}

// The context of the canvas, sized for the screen's pixels; coordinates stay those of the page.
export function sizedContext(canvas: HTMLCanvasElement, width: number, height: number) {
  const scale = devicePixelRatio || 1;
  const wanted = {width: Math.round(width * scale), height: Math.round(height * scale)};
  if (canvas.width !== wanted.width) canvas.width = wanted.width;
  if (canvas.height !== wanted.height) canvas.height = wanted.height;
  const context = canvas.getContext('2d', {alpha: false})!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}
