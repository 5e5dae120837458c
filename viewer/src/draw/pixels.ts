// Pixels of a frame, written directly: many small rectangles cost no more than few large ones.

export class Pixels {
  width = 0;
  height = 0;
  private image: ImageData | null = null;
  data = new Uint32Array(0);

  resize(width: number, height: number): void {
    if (width === this.width && height === this.height) return;
    [this.width, this.height] = [width, height];
    this.image = new ImageData(width, height);
    this.data = new Uint32Array(this.image.data.buffer);
  }

  clear(color: number): void {
    this.data.fill(color);
  }

  fill(x0: number, y0: number, x1: number, y1: number, color: number): void {
    const [left, right] = [Math.max(0, x0), Math.min(this.width, x1)];
    if (left >= right) return;
    for (let y = Math.max(0, y0); y < Math.min(this.height, y1); y++) {
      this.data.fill(color, y * this.width + left, y * this.width + right);
    }
  }

  /** Fills where `isInk` of the coordinates of a pattern is true. */
  pattern(x0: number, y0: number, x1: number, y1: number, color: number, isInk: (x: number, y: number) => boolean): void {
    const [left, right] = [Math.max(0, x0), Math.min(this.width, x1)];
    for (let y = Math.max(0, y0); y < Math.min(this.height, y1); y++) {
      for (let x = left; x < right; x++) if (isInk(x, y)) this.data[y * this.width + x] = color;
    }
  }

  show(context: CanvasRenderingContext2D): void {
    if (this.image) context.putImageData(this.image, 0, 0);
  }
}
