/** A placeholder for a value that a statement receives when it runs. */
export class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}
