// Pixels of a frame, written directly: many small rectangles cost no more than few large ones.

export class Pixels {
  width = 0;
  height = 0;
  private image: ImageData | null = null;
  data = new Int32Array(0);

  resize(width: number, height: number): void {
    if (width === this.width && height === this.height) return;
    [this.width, this.height] = [width, height];
    this.image = new ImageData(width, height);
    this.data = new Int32Array(this.image.data.buffer);
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

  show(context: CanvasRenderingContext2D): void {
    if (this.image) context.putImageData(this.image, 0, 0);
  }
}
