// What the page learns from the browser: the colour scheme and the width of an element.
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
