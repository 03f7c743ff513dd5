/** Stands for a value that a statement gets when it is run. */
export class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}
