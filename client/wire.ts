/** The HTTP interface's own types, by operation: straight from the schemas in protocol/http. Types only. */
import type { AnswerOf, InputOf, RouteName, RouteOf } from "../protocol/http";

/** A request's body as a caller writes it. */
export type Body<Name extends RouteName> = InputOf<RouteOf<Name>, "body">;
export type Query<Name extends RouteName> = InputOf<RouteOf<Name>, "query">;
export type Params<Name extends RouteName> = InputOf<RouteOf<Name>, "params">;
export type Answer<Name extends RouteName> = AnswerOf<RouteOf<Name>>;
/** One item of a list. */
export type Item<Name extends RouteName> = Answer<Name> extends readonly (infer One)[] ? One : never;

type Given<T> = T extends undefined ? unknown : T;
/** Path parameters, query and body fields of an operation in one object; a body that is not an object is used as is. */
export type Input<Name extends RouteName> =
  Body<Name> extends string ? Body<Name> : Given<Body<Name>> & Given<Query<Name>> & Given<Params<Name>>;
